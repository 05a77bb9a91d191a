package effect

import (
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// AtMostOnceOptions are the options of AtMostOnce and AtMostOnceBatch; nil is
// the same as the zero value.
type AtMostOnceOptions struct {
	// MaxRunTime is how long one run may take. 0: DefaultMaxRunTime (5
	// minutes). Negative is refused.
	MaxRunTime time.Duration
	// MaxBatch is the largest slice the batch form is given. 0:
	// DefaultMaxBatch (100). Negative is refused, and so is any but 0 for
	// the single form.
	MaxBatch int
}

// AtMostOnce makes an effect for a sink that neither dedupes nor can be asked.
// What is in doubt or ended unknown is never run again: it is parked as a dead
// letter with reason in_doubt until a person resolves it. Errors that say that
// nothing was applied are retried as for the other kinds.
//
// Wrong arguments are reported by Effect.Validate.
func AtMostOnce(f Func, o *AtMostOnceOptions) Effect {
	return atMostOnce(&checks{maker: "AtMostOnce"}, f, nil, false, o)
}

// AtMostOnceBatch is AtMostOnce for a function on several records. A crash
// leaves the whole slice in doubt, so keep MaxBatch small.
func AtMostOnceBatch(f BatchFunc, o *AtMostOnceOptions) Effect {
	return atMostOnce(&checks{maker: "AtMostOnceBatch"}, nil, f, true, o)
}

func atMostOnce(c *checks, f Func, batch BatchFunc, isBatch bool, o *AtMostOnceOptions) Effect {
	if o == nil {
		o = &AtMostOnceOptions{}
	}
	return c.finish(c.common(driver.KindAtMostOnce, f, batch, isBatch, o.MaxRunTime, o.MaxBatch))
}

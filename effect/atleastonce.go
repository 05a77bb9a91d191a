package effect

import (
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// AtLeastOnceOptions are the options of AtLeastOnce and AtLeastOnceBatch; nil
// is the same as the zero value.
type AtLeastOnceOptions struct {
	// MaxRunTime is how long one run may take. 0: DefaultMaxRunTime (5
	// minutes). Negative is refused.
	MaxRunTime time.Duration
	// MaxBatch is the largest slice the batch form is given. 0:
	// DefaultMaxBatch (100). Negative is refused, and so is any but 0 for
	// the single form.
	MaxBatch int
}

// AtLeastOnce makes an effect for a sink that tolerates repeats. No fence is
// used: every delivery runs, duplicates included, and its offset is committed
// afterwards. An unknown outcome is retried like a temporary error.
//
// Wrong arguments are reported by Effect.Validate.
func AtLeastOnce(f Func, o *AtLeastOnceOptions) Effect {
	return atLeastOnce(&checks{maker: "AtLeastOnce"}, f, nil, false, o)
}

// AtLeastOnceBatch is AtLeastOnce for a function on several records.
func AtLeastOnceBatch(f BatchFunc, o *AtLeastOnceOptions) Effect {
	return atLeastOnce(&checks{maker: "AtLeastOnceBatch"}, nil, f, true, o)
}

func atLeastOnce(c *checks, f Func, batch BatchFunc, isBatch bool, o *AtLeastOnceOptions) Effect {
	if o == nil {
		o = &AtLeastOnceOptions{}
	}
	return c.finish(c.common(driver.KindAtLeastOnce, f, batch, isBatch, o.MaxRunTime, o.MaxBatch))
}

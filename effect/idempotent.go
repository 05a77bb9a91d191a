package effect

import (
	"math"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// Forever is the IdempotentOptions.Remembers of a sink that never forgets an
// effect id, or where a repeat changes nothing because it overwrites with the
// same value (a row with a primary key from the record, a document by its id).
const Forever time.Duration = math.MaxInt64

// IdempotentOptions are the options of Idempotent and IdempotentBatch.
type IdempotentOptions struct {
	// Remembers is how long the sink dedupes by Input.EffectID, counted from
	// the first attempt. Required; Forever is allowed. An effect in doubt
	// whose first attempt is older is parked as under AtMostOnce. State the
	// sink's own time less MaxRunTime and less the clock error between you.
	Remembers time.Duration
	// MaxRunTime is how long one run may take. 0: DefaultMaxRunTime (5
	// minutes). Negative is refused.
	MaxRunTime time.Duration
	// MaxBatch is the largest slice the batch form is given. 0:
	// DefaultMaxBatch (100). Negative is refused, and so is any but 0 for
	// the single form.
	MaxBatch int
}

// Idempotent makes an effect for a sink that dedupes by Input.EffectID for at
// least o.Remembers, or where a repeat is a plain overwrite. What is in doubt
// and what ended unknown runs again with the same effect id. The promise is
// exactly once in the sink; it is the sink that keeps it.
//
// Wrong arguments are reported by Effect.Validate.
func Idempotent(f Func, o IdempotentOptions) Effect {
	return idempotent(&checks{maker: "Idempotent"}, f, nil, false, o)
}

// IdempotentBatch is Idempotent for a function on several records.
func IdempotentBatch(f BatchFunc, o IdempotentOptions) Effect {
	return idempotent(&checks{maker: "IdempotentBatch"}, nil, f, true, o)
}

func idempotent(c *checks, f Func, batch BatchFunc, isBatch bool, o IdempotentOptions) Effect {
	s := c.common(driver.KindIdempotent, f, batch, isBatch, o.MaxRunTime, o.MaxBatch)
	switch {
	case o.Remembers == 0:
		c.failf("Remembers is not given: say how long the sink dedupes by effect id, effect.Forever for a plain overwrite; if it does not dedupe use effect.Probed or effect.AtMostOnce")
	case o.Remembers < 0:
		c.failf("Remembers is %v: give a positive duration or effect.Forever; if the sink does not dedupe use effect.Probed or effect.AtMostOnce", o.Remembers)
	}
	s.remembers = max(o.Remembers, 0)
	return c.finish(s)
}

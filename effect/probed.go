package effect

import (
	"math"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// Immediately is the ProbedOptions.Settled of a sink whose answer is final as
// soon as an attempt has ended: a request that it has not begun to work on by
// then can never be worked on later.
const Immediately time.Duration = math.MinInt64

// ProbedOptions are the options of Probed and ProbedBatch.
type ProbedOptions struct {
	// Settled is how long after the end of an attempt the sink's answer is
	// final: the longest that a request of ours can lie in networks, proxies
	// and queues and still be worked on. Required: positive, or Immediately.
	// The probe is not believed when it says "not applied" before.
	Settled time.Duration
	// ProbeTimeout ends the context of one asking. 0: DefaultProbeTimeout
	// (10 s). Negative is refused.
	ProbeTimeout time.Duration
	// ProbeBackoff is the wait after the first "cannot say"; it doubles with
	// each further one, see Effect.ProbeBackoff. 0: DefaultProbeBackoff
	// (1 s). Negative is refused.
	ProbeBackoff time.Duration
	// ProbeAttempts is how often the probe is asked, the first time included,
	// before the record is parked. 0: DefaultProbeAttempts (5). Negative is
	// refused.
	ProbeAttempts int
	// MaxRunTime is how long one run may take. 0: DefaultMaxRunTime (5
	// minutes). Negative is refused.
	MaxRunTime time.Duration
	// MaxBatch is the largest slice the batch form is given. 0:
	// DefaultMaxBatch (100). Negative is refused, and so is any but 0 for
	// the single form.
	MaxBatch int
}

// Probed makes an effect for a sink that does not dedupe but can be asked what
// became of an effect id. What is in doubt and what ended unknown is asked
// about, once o.Settled has passed: applied is sealed, not applied runs (or
// goes the way of a temporary error, if it was the own attempt), cannot say is
// asked again and at last parked. The promise is exactly once if the sink
// answers truly and o.Settled holds.
//
// Wrong arguments are reported by Effect.Validate.
func Probed(f Func, probe Probe, o ProbedOptions) Effect {
	return probed(&checks{maker: "Probed"}, f, nil, false, probe, o)
}

// ProbedBatch is Probed for a function on several records. The probe is still
// asked about one record at a time: doubt is rare.
func ProbedBatch(f BatchFunc, probe Probe, o ProbedOptions) Effect {
	return probed(&checks{maker: "ProbedBatch"}, nil, f, true, probe, o)
}

func probed(c *checks, f Func, batch BatchFunc, isBatch bool, probe Probe, o ProbedOptions) Effect {
	s := c.common(driver.KindProbed, f, batch, isBatch, o.MaxRunTime, o.MaxBatch)
	if probe == nil {
		c.failf("the probe is nil: give a function that asks the sink about an effect id; if it cannot be asked use effect.AtMostOnce")
	}
	s.probe = probe
	switch {
	case o.Settled == 0:
		c.failf("Settled is not given: say how long after an attempt's end a request can still be worked on by the sink, effect.Immediately if never")
	case o.Settled < 0 && o.Settled != Immediately:
		c.failf("Settled is %v: give a positive duration or effect.Immediately", o.Settled)
	}
	s.settled = o.Settled
	s.probeTimeout = c.positive("ProbeTimeout", o.ProbeTimeout, DefaultProbeTimeout)
	s.probeBackoff = c.positive("ProbeBackoff", o.ProbeBackoff, DefaultProbeBackoff)
	s.probeAttempts = c.count("ProbeAttempts", o.ProbeAttempts, DefaultProbeAttempts)
	return c.finish(s)
}

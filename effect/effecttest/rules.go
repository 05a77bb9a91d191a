package effecttest

import (
	"fmt"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence/driver"
)

// verdict is the end of a row.
type verdict struct {
	result Result
	text   string
}

var passed = verdict{result: Passed}

func failed(format string, args ...any) verdict {
	return verdict{Failed, fmt.Sprintf(format, args...)}
}

func notTried(format string, args ...any) verdict {
	return verdict{NotTried, fmt.Sprintf(format, args...)}
}

// truthful holds what the effect said of one run against the sink: times
// before, times after.
func truthful(out effect.Outcome, before, after int) verdict {
	switch out.Class() {
	case effect.ClassApplied:
		if after == 0 {
			return failed("the effect says applied, but the sink holds nothing: the record would be acknowledged and its effect lost; return nil only after the sink has confirmed")
		}
	case effect.ClassTemporary, effect.ClassPermanent:
		if after > before {
			return failed("the effect says %s (%v), but the sink holds it: Temporary and Permanent need proof that nothing was applied; return the plain error when there is none", out.Class(), out.Err)
		}
	case effect.ClassUnknown:
	}
	return passed
}

// advice is what can be done about an effect that happened more than once.
func advice(kind driver.Kind) string {
	switch kind {
	case driver.KindIdempotent:
		return "this effect is not idempotent: use effect.Probed or effect.AtMostOnce, or make the sink dedupe by Input.EffectID"
	case driver.KindProbed:
		return "the probe must answer for what the sink holds, and nothing may be sent after the context has ended: else use effect.AtMostOnce"
	default:
		return "look at what the effect sends in one run"
	}
}

// once holds the number of effects in the end against the kind.
func (h *harness) once(when string, times int) verdict {
	switch {
	case times == 0:
		return failed("%s: the sink holds nothing, though the effect said applied: the record would be acknowledged and its effect lost", when)
	case times > 1 && h.kind != driver.KindAtLeastOnce:
		return failed("%s: the sink holds %d effects for one id: %s", when, times, advice(h.kind))
	}
	return passed
}

// unexpected is the verdict on an answer other than "applied" where nothing
// stood in the way.
func unexpected(when string, out effect.Outcome) verdict {
	return failed("%s: the effect says %s instead of applied: %v", when, out.Class(), out.Err)
}

func hangs(h *harness) verdict {
	h.hangs = true
	return failed("the effect did not return within %v of the end of its context: hand the context on to everything that blocks; until it returns a rebalance waits and its record stays in doubt", h.Limit)
}

package effecttest

import (
	"context"

	"github.com/oncefence/oncefence/effect"
)

// looks is how many of the effect's looks at its context are tried as the
// moment at which it ends.
const looks = 8

func contextOver(h *harness, in effect.Input) verdict {
	over, cancel := context.WithCancel(h.ctx)
	cancel()
	out, err := h.run(over, over, in)
	if err != nil {
		return hangs(h)
	}
	h.wait(h.LandsWithin)
	times, err := h.count(in)
	if err != nil {
		return failed("%v", err)
	}
	if times > 0 && (h.kind == probed || h.kind == atMostOnce) {
		return failed("called with a context that was over the effect went to the sink all the same: a holder that lost its claim would act behind the back of the next one; look at ctx.Err() or hand the context on")
	}
	if v := truthful(out, 0, times); v.result != Passed {
		return v
	}
	if out.Class() == effect.ClassPermanent {
		return overIsNotPermanent(out)
	}
	// And once in the middle: the context ends when the effect first looks.
	if in, err = h.input(); err != nil {
		return failed("%v", err)
	}
	inner, end := context.WithCancel(h.ctx)
	defer end()
	given, _ := endAt(inner, end, 1)
	if _, err := h.run(inner, given, in); err != nil {
		return hangs(h)
	}
	return passed
}

func overIsNotPermanent(out effect.Outcome) verdict {
	return failed("the effect says permanent because its context ended (%v): every restart would send records to the dead letters; return the context's error, or effect.Temporary when nothing was applied", out.Err)
}

// answeredLate ends the context at each of the effect's looks at it, and once
// in the middle of the time that the first run took.
func answeredLate(h *harness, in effect.Input) verdict {
	for n := int64(1); n <= looks; n++ {
		inner, end := context.WithTimeout(h.ctx, h.Effect.MaxRunTime())
		given, reached := endAt(inner, end, n)
		out, err := h.run(inner, given, in)
		end()
		if v := h.late(in, out, err); v.result != Passed {
			return v
		}
		if in, err = h.input(); err != nil {
			return failed("%v", err)
		}
		if !reached() {
			break
		}
	}
	inner, end := context.WithTimeout(h.ctx, h.firstRun/2)
	defer end()
	out, err := h.run(inner, inner, in)
	return h.late(in, out, err)
}

// late looks at one answer and brings the record to its end.
func (h *harness) late(in effect.Input, out effect.Outcome, err error) verdict {
	if err != nil {
		if h.hangs {
			return notTried("the effect does not return when its context ends, see \"context already over\"")
		}
		return hangs(h)
	}
	const when = "its context ended while it ran"
	if out.Class() == effect.ClassUnknown && h.kind != atMostOnce {
		// What it sent may still be on its way: that is what Settled and
		// deduping are for.
		return h.ended(when, in, h.resolve(when, takeover(in)))
	}
	if out.Err != nil {
		h.wait(h.LandsWithin)
	}
	times, err := h.count(in)
	if err != nil {
		return failed("%v", err)
	}
	if v := truthful(out, 0, times); v.result != Passed {
		return v
	}
	switch out.Class() {
	case effect.ClassTemporary:
		return h.ended(when, in, h.again(when+", tried again", takeover(in)))
	case effect.ClassPermanent:
		return overIsNotPermanent(out)
	case effect.ClassApplied:
		return h.once(when, times)
	case effect.ClassUnknown:
	}
	return atMost(when, times)
}

// ended looks into the sink after the record was brought to an end with v.
func (h *harness) ended(when string, in effect.Input, v verdict) verdict {
	if v.result != Passed {
		return v
	}
	h.wait(h.LandsWithin)
	times, err := h.count(in)
	if err != nil {
		return failed("%v", err)
	}
	return h.once(when+", brought to an end by the next holder", times)
}

func atMost(when string, times int) verdict {
	if times > 1 {
		return failed("%s: the sink holds %d effects for one id after one run", when, times)
	}
	return passed
}

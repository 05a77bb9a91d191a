package effecttest

import "github.com/oncefence/oncefence/effect"

func refusedForNow(h *harness, in effect.Input) verdict {
	if h.Refuse == nil {
		return notTried("Config.Refuse is not given: give a function that makes the sink refuse for a while")
	}
	const when = "the sink refused for now"
	v, _ := h.refused(when, h.Refuse, effect.ClassTemporary, in)
	if v.result != Passed {
		return v
	}
	if v := h.again(when+", then took it", takeover(in)); v.result != Passed {
		return v
	}
	times, err := h.count(in)
	if err != nil {
		return failed("%v", err)
	}
	return h.once(when+", then took it", times)
}

func refusedForGood(h *harness, in effect.Input) verdict {
	if h.Reject == nil {
		return notTried("Config.Reject is not given: give a function that makes the sink refuse for good")
	}
	v, _ := h.refused("the sink refused for good", h.Reject, effect.ClassPermanent, in)
	return v
}

// refused runs the effect against a sink that refuses and holds its answer
// against want.
func (h *harness) refused(when string, refuse func(effect.Input) func(), want effect.Class, in effect.Input) (verdict, int) {
	restore := refuse(in)
	out, err := h.plain(in)
	if restore != nil {
		restore()
	}
	if err != nil {
		return hangs(h), 0
	}
	h.wait(h.LandsWithin)
	times, err := h.count(in)
	if err != nil {
		return failed("%v", err), 0
	}
	if v := truthful(out, 0, times); v.result != Passed {
		return v, times
	}
	got := out.Class()
	switch {
	case got == want:
		return passed, times
	case got == effect.ClassUnknown && times == 0:
		return failed("%s, and the effect leaves it unknown (%v): %s; if the refusal proves that nothing was applied return effect.%s", when, out.Err, h.costOfUnknown(), wrapper(want)), times
	case got == effect.ClassPermanent:
		return failed("%s, and the effect says permanent (%v): the record would be a dead letter at once; return effect.Temporary", when, out.Err), times
	case got == effect.ClassTemporary:
		return failed("%s, and the effect says temporary (%v): the record would be tried in vain until the schedule ends; return effect.Permanent", when, out.Err), times
	}
	return failed("%s, and the effect says %s, and the sink holds it %d times: Refuse and Reject must keep the sink from applying it", when, got, times), times
}

func wrapper(c effect.Class) string {
	if c == effect.ClassPermanent {
		return "Permanent"
	}
	return "Temporary"
}

func (h *harness) costOfUnknown() string {
	switch h.kind {
	case atMostOnce:
		return "the record would be parked for a person"
	case probed:
		return "the record would wait for the probe"
	default:
		return "the record would be run again as one in doubt"
	}
}

package effecttest

import (
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence/driver"
)

func firstRun(h *harness, in effect.Input) verdict {
	before, err := h.count(in)
	if err != nil {
		return failed("%v", err)
	}
	if before != 0 {
		return failed("the sink holds %d effects for an id that is new: Applied must count one effect id only", before)
	}
	start := time.Now()
	out, err := h.plain(in)
	h.firstRun = time.Since(start)
	if err != nil {
		return hangs(h)
	}
	if out.Err != nil {
		return unexpected("nothing was in the way", out)
	}
	times, err := h.count(in)
	if err != nil {
		return failed("%v", err)
	}
	return h.once("one run", times)
}

func runTwice(h *harness, in effect.Input) verdict {
	if v := h.again("the first time", in); v.result != Passed {
		return v
	}
	if v := h.again("the second time", in); v.result != Passed {
		return v
	}
	times, err := h.count(in)
	if err != nil {
		return failed("%v", err)
	}
	return h.once("run twice", times)
}

func crashBefore(h *harness, in effect.Input) verdict {
	h.crash() // with the claim held and the effect not called
	return h.takeOver("crash before the effect", in)
}

func crashAfter(h *harness, in effect.Input) verdict {
	out, err := h.plain(in)
	if err != nil {
		return hangs(h)
	}
	if out.Err != nil {
		return unexpected("the first attempt", out)
	}
	h.crash() // and nobody has seen out
	return h.takeOver("crash after the effect", in)
}

// takeOver lets the next holder end the record and looks into the sink.
func (h *harness) takeOver(when string, in effect.Input) verdict {
	next := takeover(in)
	if v := h.resolve(when, next); v.result != Passed {
		return v
	}
	times, err := h.count(in)
	if err != nil {
		return failed("%v", err)
	}
	if h.kind != driver.KindProbed {
		when += ", run again"
	}
	return h.once(when, times)
}

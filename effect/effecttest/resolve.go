package effecttest

import (
	"fmt"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence/driver"
)

// resolve does what the loop does with a record in doubt. in is as the new
// holder is given it. It passes when the record could be brought to an end;
// how often the sink then holds the effect is for the caller to see.
func (h *harness) resolve(when string, in effect.Input) verdict {
	switch h.kind {
	case driver.KindProbed:
		return h.ask(when, in)
	case driver.KindAtMostOnce:
		return passed // parked
	default:
		return h.again(when+", run again", in)
	}
}

func (h *harness) again(when string, in effect.Input) verdict {
	out, err := h.plain(in)
	switch {
	case err != nil:
		return hangs(h)
	case out.Err != nil:
		return unexpected(when, out)
	}
	return passed
}

// ask waits until the probe's answer is final, asks and acts upon it.
func (h *harness) ask(when string, in effect.Input) verdict {
	settled := h.Effect.Settled()
	if settled > h.MaxSettled {
		h.note = fmt.Sprintf("the probe was asked after %v instead of Settled (%v): raise MaxSettled to wait for it", h.MaxSettled, settled)
		settled = h.MaxSettled
	}
	h.wait(settled)
	finding, err := h.finding(in)
	if _, applied := finding.Applied(); applied {
		times, err := h.count(in)
		switch {
		case err != nil:
			return failed("%v", err)
		case times == 0:
			return failed("%s: the probe says applied, but the sink holds nothing: the record would be sealed and its effect lost", when)
		}
		return passed
	}
	if finding.NotApplied() {
		return h.again(when+", the probe says not applied, run again", in)
	}
	if err != nil {
		return failed("%s: the probe cannot say (%v): every record in doubt would be parked for a person", when, err)
	}
	return failed("%s: the probe cannot say: every record in doubt would be parked for a person", when)
}

// finding asks as often as the loop would, within MaxSettled.
func (h *harness) finding(in effect.Input) (effect.Finding, error) {
	start := time.Now()
	for n := 1; ; n++ {
		finding, err := h.Effect.Ask(h.ctx, in)
		left := h.MaxSettled - time.Since(start)
		if !finding.CannotSay() || n >= h.Effect.ProbeAttempts() || left <= 0 || h.ctx.Err() != nil {
			return finding, err
		}
		h.wait(min(h.Effect.ProbeBackoff(n), left))
	}
}

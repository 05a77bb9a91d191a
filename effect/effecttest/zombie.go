package effecttest

import (
	"context"
	"time"

	"github.com/oncefence/oncefence/effect"
)

// zombie pauses an older holder in the middle of its run, as a stopped machine
// does, lets a newer one bring the record to its end, and lets the older go on
// when its lease is long over.
func zombie(h *harness, in effect.Input) verdict {
	if v := h.paused(in); v.result != Passed {
		return v
	}
	if h.kind != idempotent {
		return passed
	}
	// A holder whose context has not noticed yet: only the sink can help.
	in, err := h.input()
	if err != nil {
		return failed("%v", err)
	}
	if v := h.again("a newer holder", takeover(in)); v.result != Passed {
		return v
	}
	if _, err := h.plain(in); err != nil { // a refusal of the sink is fine
		return hangs(h)
	}
	return h.afterwards("an older holder ran after a newer one", in)
}

func (h *harness) paused(in effect.Input) verdict {
	inner, end := context.WithTimeout(h.ctx, h.Effect.MaxRunTime())
	defer end()
	given, held, release := holdAt(inner)
	defer release()
	old := h.start(given, in)
	select {
	case <-held:
	case out := <-old:
		// It never looks at its context, so it cannot be paused.
		if out.Err != nil {
			return unexpected("the older holder", out)
		}
		old = nil
	case <-inner.Done():
		return hangs(h)
	}

	h.crash() // for the others the older process is dead
	newer := make(chan verdict, 1)
	go func() { newer <- h.resolve("an older holder was paused in its run", takeover(in)) }()
	patience := time.NewTimer(h.Limit + 10*h.firstRun + 2*h.MaxSettled + h.LandsWithin)
	defer patience.Stop()
	var v verdict
	select {
	case v = <-newer:
	case <-patience.C:
		// The older one stands in the newer one's way: let both go.
		release()
		<-newer
		return notTried("the effect holds something that a second run needs while it looks at its context, so an older holder cannot be paused beside a newer one")
	}
	end()
	release()
	if v.result != Passed {
		return v
	}
	if old != nil {
		if _, err := h.await(inner, old); err != nil {
			return hangs(h)
		}
	}
	return h.afterwards("an older holder was paused and went on after a newer one had finished", in)
}

func (h *harness) afterwards(when string, in effect.Input) verdict {
	h.wait(h.LandsWithin)
	times, err := h.count(in)
	if err != nil {
		return failed("%v", err)
	}
	return h.once(when, times)
}

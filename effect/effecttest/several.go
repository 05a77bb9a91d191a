package effecttest

import (
	"context"
	"fmt"

	"github.com/oncefence/oncefence/effect"
)

func several(h *harness, first effect.Input) verdict {
	in := []effect.Input{first}
	for len(in) < min(3, h.Effect.MaxBatch()) {
		next, err := h.input()
		if err != nil {
			return failed("%v", err)
		}
		in = append(in, next)
	}
	ctx, cancel := context.WithTimeout(h.ctx, h.Effect.MaxRunTime())
	defer cancel()
	answer := make(chan []effect.Outcome, 1)
	go func() {
		var out []effect.Outcome
		defer func() { answer <- out }()
		out = h.Effect.RunBatch(ctx, in)
	}()
	out, ok := within(ctx, h.Limit, answer)
	if !ok {
		return hangs(h)
	}
	if len(out) != len(in) {
		return failed("%v", errGoexit)
	}
	for i := range in {
		times, err := h.count(in[i])
		if err != nil {
			return failed("%v", err)
		}
		if v := truthful(out[i], 0, times); v.result != Passed {
			v.text = place(i, len(in)) + v.text
			return v
		}
		if out[i].Err != nil {
			return unexpected(place(i, len(in))+"nothing was in the way", out[i])
		}
		if v := h.once(place(i, len(in))+"one call", times); v.result != Passed {
			return v
		}
	}
	return passed
}

func place(i, of int) string { return fmt.Sprintf("record %d of %d: ", i+1, of) }

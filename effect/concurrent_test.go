package effect_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
)

// One Effect and its copies serve many goroutines at once.
func TestAnEffectIsUsedByManyGoroutines(t *testing.T) {
	f := func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		return effect.Receipt{EffectID: "for " + in.EffectID}, nil
	}
	batch := func(ctx context.Context, in []effect.Input) []effect.Outcome {
		out := effect.NewOutcomes(in)
		for i := range in {
			r, err := f(ctx, in[i])
			out[i] = effect.Outcome{Receipt: r, Err: err}
		}
		return out
	}
	probe := func(ctx context.Context, in effect.Input) (effect.Finding, error) {
		r, err := f(ctx, in)
		return effect.Applied(r), err
	}
	single := effect.Probed(f, probe, effect.ProbedOptions{Settled: time.Second})
	several := effect.ProbedBatch(batch, probe, effect.ProbedOptions{Settled: time.Second})

	var wg sync.WaitGroup
	for i := range 16 {
		for _, e := range []effect.Effect{single, several} {
			wg.Go(func() {
				in := effect.Input{Key: fmt.Sprint("k", i), EffectID: fmt.Sprint(i)}
				want := fmt.Sprint("for ", i)
				if out := e.Run(t.Context(), in); out.Receipt.EffectID != want {
					t.Errorf("Run: %+v, want %q", out, want)
				}
				for _, out := range e.RunBatch(t.Context(), []effect.Input{in, in}) {
					if out.Receipt.EffectID != want {
						t.Errorf("RunBatch: %+v, want %q", out, want)
					}
				}
				finding, err := e.Ask(t.Context(), in)
				if r, ok := finding.Applied(); err != nil || !ok || r.EffectID != want {
					t.Errorf("Ask: %v, %v, want %q", finding, err, want)
				}
			})
		}
	}
	wg.Wait()
}

func TestNewOutcomesAreUnknown(t *testing.T) {
	out := effect.NewOutcomes(inputs(3))
	if len(out) != 3 {
		t.Fatalf("%d outcomes for 3 records", len(out))
	}
	for _, o := range out {
		if o.Class() != effect.ClassUnknown {
			t.Errorf("outcome %+v, want unknown", o)
		}
	}
}

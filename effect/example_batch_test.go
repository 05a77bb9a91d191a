package effect_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncefence/oncefence/effect"
)

// A batch function that may stop half way starts with NewOutcomes, so that
// what it never reached does not read as applied.
func ExampleNewOutcomes() {
	errDisk := errors.New("disk full")
	write := func(_ context.Context, in []effect.Input) []effect.Outcome {
		out := effect.NewOutcomes(in)
		for i := range in {
			if i == 1 {
				out[i].Err = effect.Temporary(errDisk)
				return out
			}
			out[i] = effect.Outcome{Receipt: effect.Receipt{EffectID: "row-" + in[i].EffectID}}
		}
		return out
	}
	e := effect.AtMostOnceBatch(write, &effect.AtMostOnceOptions{MaxBatch: 10})
	for _, o := range e.RunBatch(context.Background(), []effect.Input{{EffectID: "01"}, {EffectID: "02"}, {EffectID: "03"}}) {
		fmt.Printf("%v %q\n", o.Class(), o.Receipt.EffectID)
	}
	// Output:
	// applied "row-01"
	// temporary ""
	// unknown ""
}

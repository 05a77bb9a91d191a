package effect_test

import (
	"context"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/effect"
)

// A sink that does not dedupe, but answers what became of an id.
func ExampleProbed() {
	ledger := map[string]string{} // stands for the provider
	charge := func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		ledger[in.EffectID] = "booking-1"
		return effect.Receipt{}, context.DeadlineExceeded // the answer came too late
	}
	probe := func(_ context.Context, in effect.Input) (effect.Finding, error) {
		if id, ok := ledger[in.EffectID]; ok {
			return effect.Applied(effect.Receipt{EffectID: id}), nil
		}
		return effect.NotApplied(), nil
	}

	e := effect.Probed(charge, probe, effect.ProbedOptions{Settled: 30 * time.Second})
	in := effect.Input{EffectID: "0f3a"}
	fmt.Println(e.Run(context.Background(), in).Class())
	finding, err := e.Ask(context.Background(), in) // after Settled
	receipt, _ := finding.Applied()
	fmt.Println(finding, receipt.EffectID, err)
	// Output:
	// unknown
	// applied booking-1 <nil>
}

package effecttest_test

import (
	"context"
	"fmt"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/effecttest"
)

// An insert without a unique key is called idempotent, and found out.
func ExampleRun() {
	var table []string // one effect id a row
	insert := func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		table = append(table, in.EffectID)
		return effect.Receipt{}, nil
	}
	report := effecttest.Run(context.Background(), effecttest.Config{
		Effect: effect.Idempotent(insert, effect.IdempotentOptions{Remembers: effect.Forever}),
		Applied: func(_ context.Context, in effect.Input) (times int, err error) {
			for _, id := range table {
				if id == in.EffectID {
					times++
				}
			}
			return times, nil
		},
	})
	row, _ := report.Row("crash after the effect")
	fmt.Println(row.Result)
	fmt.Println(row.Verdict)
	// Output:
	// FAILED
	// crash after the effect, run again: the sink holds 2 effects for one id: this effect is not idempotent: use effect.Probed or effect.AtMostOnce, or make the sink dedupe by Input.EffectID
}

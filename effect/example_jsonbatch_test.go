package effect_test

import (
	"context"
	"fmt"

	"github.com/oncefence/oncefence/effect"
)

// Several decoded records in one call, one outcome for each.
func ExampleJSONBatch() {
	type order struct {
		ID string `json:"id"`
	}
	ship := func(_ context.Context, orders []effect.Item[order]) []effect.Outcome {
		out := make([]effect.Outcome, len(orders))
		for i, o := range orders {
			out[i].Receipt.EffectID = "parcel-" + o.Value.ID
		}
		return out
	}
	e := effect.IdempotentBatch(effect.JSONBatch(ship), effect.IdempotentOptions{Remembers: effect.Forever})

	for _, o := range e.RunBatch(context.Background(), []effect.Input{
		{EffectID: "01", Payload: []byte(`{"id":"A-17"}`)},
		{EffectID: "02", Payload: []byte(`not an order`)},
		{EffectID: "03", Payload: []byte(`{"id":"A-19"}`)},
	}) {
		fmt.Printf("%v %q\n", o.Class(), o.Receipt.EffectID)
	}
	// Output:
	// applied "parcel-A-17"
	// permanent ""
	// applied "parcel-A-19"
}

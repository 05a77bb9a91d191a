package effect_test

import (
	"context"
	"fmt"

	"github.com/oncefence/oncefence/effect"
)

// The function takes a decoded order; what does not decode goes to the dead
// letters without being seen by it.
func ExampleJSON() {
	type order struct {
		ID    string `json:"id"`
		Cents int64  `json:"cents"`
	}
	charge := func(_ context.Context, o order, in effect.Input) (effect.Receipt, error) {
		fmt.Println("charge", o.Cents, "cents for", o.ID)
		return effect.Receipt{}, nil
	}
	e := effect.AtMostOnce(effect.JSON(charge, effect.DisallowUnknownFields()), nil)

	e.Run(context.Background(), effect.Input{Payload: []byte(`{"id":"A-17","cents":995}`)})
	out := e.Run(context.Background(), effect.Input{Payload: []byte(`{"id":"A-18","cents":"a lot"}`)})
	fmt.Println(effect.Reason(out.Err))
	// Output:
	// charge 995 cents for A-17
	// undecodable
}

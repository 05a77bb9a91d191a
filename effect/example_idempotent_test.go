package effect_test

import (
	"context"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/effect"
)

// A sink that dedupes by an id of our choosing: give it Input.EffectID, which
// stays the same over crashes, retries and replays.
func ExampleIdempotent() {
	booked := map[string]string{} // stands for the provider
	charge := func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		if _, ok := booked[in.EffectID]; !ok {
			booked[in.EffectID] = fmt.Sprintf("booking-%d", len(booked)+1)
		}
		return effect.Receipt{EffectID: booked[in.EffectID]}, nil
	}

	e := effect.Idempotent(charge, effect.IdempotentOptions{Remembers: 24 * time.Hour})
	if err := e.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	// What the consumer does when a process died after the first run:
	in := effect.Input{EffectID: "0f3a"}
	fmt.Println(e.Run(context.Background(), in).Receipt.EffectID)
	fmt.Println(e.Run(context.Background(), in).Receipt.EffectID)
	fmt.Println("bookings:", len(booked))
	// Output:
	// booking-1
	// booking-1
	// bookings: 1
}

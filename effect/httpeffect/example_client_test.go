package httpeffect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

// A payment provider that dedupes by Idempotency-Key. The effect returns the
// error of Do as it is: it says what is known.
func ExampleClient_Do() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Booking", "booking for "+r.Header.Get("Idempotency-Key"))
		w.WriteHeader(http.StatusCreated)
	}))
	defer provider.Close()

	client, err := httpeffect.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseIdleConnections()
	charge := func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		resp, err := client.Do(ctx, in, httpeffect.Request{
			URL:    provider.URL + "/charges",
			Header: http.Header{"Content-Type": {"application/json"}},
			Body:   in.Payload,
		})
		if err != nil {
			return effect.Receipt{}, err
		}
		return effect.Receipt{EffectID: resp.Header.Get("X-Booking")}, nil
	}

	e := effect.Idempotent(charge, effect.IdempotentOptions{Remembers: 24 * time.Hour})
	out := e.Run(context.Background(), effect.Input{EffectID: "0f3a", Payload: []byte(`{"cents":995}`)})
	fmt.Println(out.Receipt.EffectID, out.Err)
	// Output: booking for 0f3a <nil>
}

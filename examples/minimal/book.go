package main

import (
	"context"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

// bookings is where the provider books an order. It dedupes by the header
// Idempotency-Key, which the client sends with our effect id.
const bookings = "http://127.0.0.1:8080/bookings"

var provider = must(httpeffect.New(nil))

// book is the effect: it runs once for each order, and again with the same
// effect id when nobody knows how that ended. The client's errors say whether
// the provider may have booked.
func book(ctx context.Context, in effect.Input) (effect.Receipt, error) {
	answer, err := provider.Do(ctx, in, httpeffect.Request{URL: bookings, Body: in.Payload})
	return effect.Receipt{EffectID: answer.Header.Get("Booking-Id")}, err
}

func must(client *httpeffect.Client, err error) *httpeffect.Client {
	if err != nil {
		panic(err) // the options are wrong, and there are none
	}
	return client
}

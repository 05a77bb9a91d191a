package fence_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/memfence"
)

// The fence without the consumer loop: a webhook handler that charges a card
// once, however often the webhook is delivered. Any other store of this module
// takes the place of memfence.
func Example_claim() {
	ctx := context.Background()
	f, err := memfence.New(&memfence.Options{Fence: &fence.Options{Demand: driver.GradeVolatile}})
	if err != nil {
		panic(err)
	}
	defer f.Close()
	ns, err := fence.NewNamespace(fence.Nil, "webhooks")
	if err != nil {
		panic(err)
	}
	space, err := f.Open(ctx, ns)
	if err != nil {
		panic(err)
	}
	defer space.Close(ctx)

	charge := func(context.Context, string) (chargeID string, err error) { return "ch_7", nil }
	for range 2 {
		answer, err := handle(ctx, space, []byte(`{"event":"evt_1","cents":1250}`), charge)
		fmt.Println(answer, err)
	}
	// Output:
	// charged as ch_7 <nil>
	// charged before as ch_7 <nil>
}

// handle runs charge under a claim. An error means: deliver again later.
func handle(ctx context.Context, space *fence.Space, payload []byte, charge func(context.Context, string) (string, error)) (string, error) {
	key := fence.JoinKey(fence.Text("webhook"), fence.Text("evt_1"))
	request := &fence.Request{
		Key: key, Kind: driver.KindIdempotent, Attempt: 1, Fingerprint: fence.FingerprintOf(payload),
	}
	claimed := space.Claim(ctx, []*fence.Request{request})[0]
	if claimed.Err != nil { // failed or unknown: what was claimed is released
		space.Abandon(request)
		return "", claimed.Err
	}
	hold := claimed.Hold
	if hold != nil {
		defer hold.Drop() // what was not sealed is left to its lease
	}
	switch claimed.Answer {
	case driver.Duplicate:
		return "charged before as " + claimed.Record.EffectID, nil
	case driver.New, driver.InDoubt:
		// In doubt: a holder ended without a word. The sink dedupes by effect id
		// (KindIdempotent), so the effect runs again.
	default:
		return "", fmt.Errorf("%s: %v, left %v", key, claimed.Answer, claimed.Left)
	}
	run, cancel := hold.Context(ctx, time.Minute)
	defer cancel()
	chargeID, err := charge(run, fence.EffectID(space.Namespace(), key))
	if err != nil { // unknown: the next claim is answered in_doubt
		return "", err
	}
	sealed := space.Apply(ctx, []driver.Transition{hold.Seal(driver.KindIdempotent, chargeID, nil)})[0]
	if sealed.Err != nil {
		return "", sealed.Err
	}
	if sealed.Outcome == driver.Refused {
		return "", errors.New("another holder has the key: the charge was applied late")
	}
	return "charged as " + chargeID, nil
}

package httpeffect_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

// The error tells whether the request can have reached the sink.
func ExampleError() {
	client, err := httpeffect.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the lease ended before the effect got so far
	_, err = client.Do(ctx, effect.Input{EffectID: "0f3a"}, httpeffect.Request{URL: "https://pay.example/charges"})

	var e *httpeffect.Error
	fmt.Println(errors.As(err, &e), e.MayBeWritten)
	fmt.Println(err)
	// Output:
	// true false
	// temporary: POST https://pay.example/charges: context canceled (the request never left)
}

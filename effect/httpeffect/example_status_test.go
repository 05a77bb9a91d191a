package httpeffect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

// Without a word from the provider a 503 leaves the outcome unknown. If its
// documentation says that nothing was booked then, declare it; and a 409 that
// means "the first request with this key is still running" is no refusal for
// good.
func ExampleOptions_status() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer provider.Close()

	for _, o := range []*httpeffect.Options{
		nil,
		{Status: map[int]httpeffect.Meaning{
			http.StatusServiceUnavailable: httpeffect.RefusedForNow,
			http.StatusConflict:           httpeffect.RefusedForNow,
		}},
	} {
		client, err := httpeffect.New(o)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = client.Do(context.Background(), effect.Input{EffectID: "0f3a"}, httpeffect.Request{URL: provider.URL})
		client.CloseIdleConnections()
		fmt.Println(effect.Classify(err))
	}
	// Output:
	// unknown 5s
	// temporary 5s
}

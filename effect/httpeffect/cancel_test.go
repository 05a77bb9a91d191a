package httpeffect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

// Requests are cancelled at every moment of their way. Whatever Do says about
// them, "temporary" must never be said about one that a handler saw.
func TestTemporaryIsNeverSaidAboutARequestThatArrived(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.Header.Get("Idempotency-Key")] = true
	}))
	c := newClient(t, nil)

	const requests = 400
	errs := make([]error, requests)
	var wg sync.WaitGroup
	running := make(chan struct{}, 8)
	for i := range requests {
		running <- struct{}{}
		wg.Go(func() {
			defer func() { <-running }()
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%40)*20*time.Microsecond)
			defer cancel()
			input := effect.Input{EffectID: fmt.Sprintf("id-%d", i)}
			_, errs[i] = c.Do(ctx, input, httpeffect.Request{URL: s.URL, Body: []byte("body")})
		})
	}
	wg.Wait()
	c.CloseIdleConnections()
	s.Close() // waits for the handlers

	classes := map[effect.Class]int{}
	for i, err := range errs {
		class := classOf(err)
		classes[class]++
		if arrived := seen[fmt.Sprintf("id-%d", i)]; arrived && class == effect.ClassTemporary {
			t.Errorf("request %d arrived, but Do said %v", i, err)
		} else if !arrived && class == effect.ClassApplied {
			t.Errorf("request %d never arrived, but Do said applied", i)
		}
	}
	if classes[effect.ClassTemporary] == 0 || classes[effect.ClassPermanent] != 0 {
		t.Errorf("outcomes %v, want some temporary and none permanent", classes)
	}
	t.Logf("outcomes: %v", classes)
}

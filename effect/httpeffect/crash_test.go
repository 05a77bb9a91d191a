package httpeffect_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/effecttest"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

// provider books what it is sent and tells what it booked.
type provider struct {
	mu     sync.Mutex
	dedupe bool
	booked map[string]int
	status int // what it refuses with, 0: it does not
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := r.Header.Get("Idempotency-Key")
	switch {
	case r.Method == http.MethodGet && p.booked[id] == 0:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
	case p.status != 0:
		w.WriteHeader(p.status)
	case p.dedupe && p.booked[id] > 0:
	default:
		p.booked[id]++
		w.WriteHeader(http.StatusCreated)
	}
}

func (p *provider) applied(_ context.Context, in effect.Input) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.booked[in.EffectID], nil
}

func (p *provider) refusing(status int) func(effect.Input) func() {
	set := func(status int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.status = status
	}
	return func(effect.Input) func() { set(status); return func() { set(0) } }
}

// Effects over this client keep the rules of their kinds on a real connection.
func TestEffectsOverHTTPUnderCrashes(t *testing.T) {
	for name, kind := range map[string]func(effect.Func, effect.Probe) effect.Effect{
		"idempotent": func(f effect.Func, _ effect.Probe) effect.Effect {
			return effect.Idempotent(f, effect.IdempotentOptions{Remembers: effect.Forever})
		},
		"probed": func(f effect.Func, p effect.Probe) effect.Effect {
			return effect.Probed(f, p, effect.ProbedOptions{Settled: 50 * time.Millisecond})
		},
		"at most once": func(f effect.Func, _ effect.Probe) effect.Effect { return effect.AtMostOnce(f, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{dedupe: name == "idempotent", booked: map[string]int{}}
			s := serve(t, p.ServeHTTP)
			c := newClient(t, nil)
			charge := func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
				_, err := c.Do(ctx, in, httpeffect.Request{URL: s.URL, Body: in.Payload})
				return effect.Receipt{}, err
			}
			ask := func(ctx context.Context, in effect.Input) (effect.Finding, error) {
				resp, err := c.Do(ctx, in, httpeffect.Request{Method: http.MethodGet, URL: s.URL})
				switch {
				case err == nil:
					return effect.Applied(effect.Receipt{}), nil
				case resp.Status == http.StatusNotFound:
					return effect.NotApplied(), nil
				}
				return effect.CannotSay(), err
			}
			report := effecttest.Run(t.Context(), effecttest.Config{
				Effect: kind(charge, ask), Applied: p.applied,
				Input:  effect.Input{Payload: []byte(`{"cents":995}`)},
				Refuse: p.refusing(http.StatusTooManyRequests), Reject: p.refusing(http.StatusUnprocessableEntity),
				LandsWithin: 10 * time.Millisecond,
			})
			for _, row := range report.Rows {
				if row.Result != effecttest.Passed {
					t.Errorf("%q: %v, %s", row.Name, row.Result, row.Verdict)
				}
			}
		})
	}
}

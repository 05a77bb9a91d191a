package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
	"github.com/oncefence/oncefence/test/sweep/ledger"
)

// Order is the value of a line.
type Order struct {
	ID string `json:"id"`
	N  int    `json:"n,omitempty"` // another number is another payload
	// Do is what the sink is to do, see package ledger.
	Do []string `json:"do,omitempty"`
	// Crash: the effect kills its process, each time.
	Crash bool `json:"crash,omitempty"`
}

// Kinds are the kinds of effect that a member can run.
var Kinds = []string{"idempotent", "probed", "at-most-once", "at-least-once"}

// Sink returns what the sink must offer for a kind.
func Sink(kind string) ledger.Options {
	return ledger.Options{Dedupes: kind == "idempotent", Answers: kind == "probed"}
}

type sink struct {
	url    string
	client *httpeffect.Client
}

// newEffect returns the booking as an effect of the kind.
func newEffect(cfg Settings) (effect.Effect, error) {
	client, err := httpeffect.New(&httpeffect.Options{
		Timeout: ledger.ClientWaits,
		Status:  map[int]httpeffect.Meaning{http.StatusServiceUnavailable: httpeffect.RefusedForNow},
	})
	if err != nil {
		return effect.Effect{}, err
	}
	s := &sink{url: cfg.Sink, client: client}
	book := effect.JSON(s.book)
	switch cfg.Kind {
	case "idempotent":
		return effect.Idempotent(book, effect.IdempotentOptions{Remembers: effect.Forever}), nil
	case "probed":
		return effect.Probed(book, s.probe, effect.ProbedOptions{Settled: cfg.Settled, ProbeBackoff: 100 * time.Millisecond}), nil
	case "at-most-once":
		return effect.AtMostOnce(book, nil), nil
	case "at-least-once":
		return effect.AtLeastOnce(book, nil), nil
	}
	return effect.Effect{}, fmt.Errorf("unknown kind %q: use one of %v", cfg.Kind, Kinds)
}

func (s *sink) book(ctx context.Context, o Order, in effect.Input) (effect.Receipt, error) {
	if o.Crash {
		return effect.Receipt{}, die()
	}
	body, err := json.Marshal(ledger.Request{EffectID: in.EffectID, Order: o.ID, Token: in.Token, Do: o.Do})
	if err != nil {
		return effect.Receipt{}, effect.Permanent(err)
	}
	answer, err := s.client.Do(ctx, in, httpeffect.Request{URL: s.url + "/book", Body: body})
	if err != nil {
		return effect.Receipt{}, err
	}
	return receipt(answer)
}

func (s *sink) probe(ctx context.Context, in effect.Input) (effect.Finding, error) {
	ask := url.Values{"effect_id": {in.EffectID}, "token": {strconv.FormatUint(in.Token, 10)}}
	answer, err := s.client.Do(ctx, in, httpeffect.Request{Method: http.MethodGet, URL: s.url + "/book?" + ask.Encode()})
	switch {
	case err != nil && answer.Status == http.StatusNotFound:
		return effect.NotApplied(), nil
	case err != nil:
		return effect.CannotSay(), err
	}
	r, err := receipt(answer)
	return effect.Applied(r), err
}

func receipt(answer httpeffect.Response) (effect.Receipt, error) {
	var booked struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(answer.Body, &booked); err != nil {
		return effect.Receipt{}, fmt.Errorf("the sink's answer: %w", err)
	}
	return effect.Receipt{EffectID: booked.ID}, nil
}

// die kills this process as a fault in the user's code would.
func die() error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		return errors.Join(errors.New("this process could not be killed"), err)
	}
	select {} // the signal is on its way
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

// clientWaits is how long the payment client waits for an answer. settled is
// how long after that the provider's word about a charge is final.
const (
	clientWaits = 300 * time.Millisecond
	settled     = time.Second
)

// payments is the client of the payment provider.
type payments struct {
	url    string
	client *httpeffect.Client
}

func newPayments(providerURL string) (*payments, error) {
	client, err := httpeffect.New(&httpeffect.Options{
		Timeout: clientWaits,
		// The provider documents that it books nothing when it answers 503.
		Status: map[int]httpeffect.Meaning{http.StatusServiceUnavailable: httpeffect.RefusedForNow},
	})
	return &payments{url: providerURL, client: client}, err
}

// effect returns the charge as an effect of the kind, or an error that lists
// the kinds.
func (p *payments) effect(kind string) (effect.Effect, error) {
	charge := effect.JSON(p.charge)
	switch kind {
	case "idempotent": // the provider dedupes by our effect id for a day
		return effect.Idempotent(charge, effect.IdempotentOptions{Remembers: 24 * time.Hour}), nil
	case "probed": // it does not, but it can be asked
		return effect.Probed(charge, p.probe, effect.ProbedOptions{Settled: settled}), nil
	case "at-most-once": // neither
		return effect.AtMostOnce(charge, nil), nil
	}
	return effect.Effect{}, fmt.Errorf("unknown kind %q: use idempotent, probed or at-most-once", kind)
}

// charge books an order at the provider.
func (p *payments) charge(ctx context.Context, o order, in effect.Input) (effect.Receipt, error) {
	body, err := json.Marshal(chargeRequest{EffectID: in.EffectID, OrderID: o.ID, AmountCents: o.AmountCents})
	if err != nil {
		return effect.Receipt{}, effect.Permanent(err)
	}
	answer, err := p.client.Do(ctx, in, httpeffect.Request{URL: p.url + "/charges", Body: body})
	if err != nil {
		return effect.Receipt{}, err
	}
	return receipt(answer)
}

// probe asks the provider what became of a charge.
func (p *payments) probe(ctx context.Context, in effect.Input) (effect.Finding, error) {
	answer, err := p.client.Do(ctx, in, httpeffect.Request{Method: http.MethodGet, URL: p.url + "/charges?effect_id=" + url.QueryEscape(in.EffectID)})
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
	var booked booking
	if err := json.Unmarshal(answer.Body, &booked); err != nil {
		return effect.Receipt{}, fmt.Errorf("the provider's answer: %w", err)
	}
	return effect.Receipt{EffectID: booked.ID}, nil
}

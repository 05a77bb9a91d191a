package main

import (
	"fmt"
	"testing"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

func start(t *testing.T, kind string, faults float64) (*provider, *payments) {
	t.Helper()
	p, err := startProvider(kind, faults)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	client, err := newPayments(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	return p, client
}

func charge(t *testing.T, c *payments, effectID, orderID string, cents int64) (effect.Receipt, error) {
	t.Helper()
	return c.charge(t.Context(), order{ID: orderID, AmountCents: cents}, effect.Input{EffectID: effectID})
}

func expectBooks(t *testing.T, p *provider, charges int, cents int64, doubles int) {
	t.Helper()
	if c, sum, d := p.books(); c != charges || sum != cents || d != doubles {
		t.Errorf("the ledger has %d charges of %d cents, %d double; want %d, %d, %d", c, sum, d, charges, cents, doubles)
	}
}

func TestProviderByKind(t *testing.T) {
	for kind, want := range map[string]struct {
		charges, doubles int
		finding          effect.Finding
	}{
		"idempotent":   {2, 0, effect.CannotSay()},
		"probed":       {3, 1, effect.Applied(effect.Receipt{EffectID: "ch_00000003"})},
		"at-most-once": {3, 1, effect.CannotSay()},
	} {
		t.Run(kind, func(t *testing.T) {
			p, c := start(t, kind, 0)
			first, err := charge(t, c, "e1", "A1", 250)
			if err != nil || first.EffectID == "" {
				t.Fatalf("charge: %+v, %v", first, err)
			}
			if _, err := charge(t, c, "e2", "A2", -100); err != nil {
				t.Fatalf("a refund is refused: %v", err)
			}
			again, err := charge(t, c, "e1", "A1", 250)
			if err != nil || (again.EffectID == first.EffectID) != (kind == "idempotent") {
				t.Errorf("the same effect id again: %+v, %v, first %+v", again, err, first)
			}
			expectBooks(t, p, want.charges, 150+int64(want.doubles)*250, want.doubles)
			finding, err := c.probe(t.Context(), effect.Input{EffectID: "e1"})
			if fmt.Sprint(finding) != fmt.Sprint(want.finding) {
				t.Errorf("the probe finds %v, %v, want %v", finding, err, want.finding)
			}
			if kind != "probed" {
				return
			}
			if finding, err := c.probe(t.Context(), effect.Input{EffectID: "never"}); err != nil || !finding.NotApplied() {
				t.Errorf("of an effect that never was the probe finds %v, %v", finding, err)
			}
		})
	}
}

// Each fault is what it says it is, to the client and in the ledger.
func TestProviderFaults(t *testing.T) {
	p, c := start(t, "at-most-once", 100)
	seen := map[effect.Class]int{}
	for i := range 12 {
		before, _, _ := p.books()
		_, err := charge(t, c, fmt.Sprint("e", i), fmt.Sprint("A", i), 1)
		after, _, _ := p.books()
		class, _ := effect.Classify(err)
		seen[class]++
		switch {
		case class == effect.ClassTemporary && after != before:
			t.Errorf("a refused request was booked: %v", err)
		case class == effect.ClassUnknown && after != before+1:
			t.Errorf("a request without an answer was booked %d times: %v", after-before, err)
		}
	}
	if seen[effect.ClassTemporary] == 0 || seen[effect.ClassUnknown] < 2 || len(seen) != 2 {
		t.Errorf("with 100 %% faults the outcomes are %v", seen)
	}
}

func TestProviderRefusesNonsense(t *testing.T) {
	p, c := start(t, "probed", 0)
	_, err := c.client.Do(t.Context(), effect.Input{}, httpeffect.Request{URL: p.URL + "/charges", Body: []byte("no json")})
	if class, _ := effect.Classify(err); err == nil || class != effect.ClassPermanent {
		t.Errorf("a request that does not decode answers %v", err)
	}
	expectBooks(t, p, 0, 0, 0)
}

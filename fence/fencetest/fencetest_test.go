package fencetest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

func bubble(open func() driver.Store) Harness {
	return Harness{
		Open: func(context.Context) (driver.Store, error) { return open(), nil },
		Pass: func(_ context.Context, d time.Duration) error {
			time.Sleep(d)
			return nil
		},
		FreeTime: true,
		Around:   synctest.Test,
	}
}

func TestMutants(t *testing.T) {
	caught := map[string]bool{}
	for _, all := range []map[string]mutant{mutants, wrapMutants} {
		for name, m := range all {
			caught[m.rule] = true
			t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) { wantBroken(t, m.bend, m.rule) })
		}
	}
	for _, r := range Rules() {
		if strings.HasPrefix(r.Name, "matrix/") {
			t.Run(r.Name, func(t *testing.T) {
				wantBroken(t, asked(nil, func(_ *driver.Claim, _ *record, a *driver.Claimed, _ **record) { a.Record.Attempt++ }), r.Name)
				wantBroken(t, said(nil, func(t *driver.Transition, _ *record, a *driver.Applied, _ **record) {
					if t.Op == driver.HandOver && t.InDoubt {
						a.Outcome = driver.NoOutcome
					}
				}), r.Name)
			})
		} else if !caught[r.Name] && r.needs != needSecond {
			t.Errorf("no mutant breaks the rule %s", r.Name)
		}
	}
}

// wantBroken runs one rule on a bent store.
func wantBroken(t *testing.T, b bend, name string) {
	t.Helper()
	rules := named(t, name)
	synctest.Test(t, func(t *testing.T) {
		report := runRules(t.Context(), bubble(b.open), rules)
		if len(report.Broken) != 1 || report.Broken[0].Rule.Name != name {
			t.Fatalf("it passes the rule %s", name)
		}
		if err := report.Err(); !strings.Contains(err.Error(), rules[0].Says) {
			t.Errorf("the report does not name the rule in words: %v", err)
		}
	})
}

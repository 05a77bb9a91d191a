package fencetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

func named(t *testing.T, name string) []Rule {
	t.Helper()
	at := slices.IndexFunc(Rules(), func(r Rule) bool { return r.Name == name })
	if at < 0 {
		t.Fatalf("there is no rule %s", name)
	}
	return Rules()[at : at+1]
}

func TestRulesAreSentences(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if r.Name == "" || len(strings.Fields(r.Says)) < 5 || seen[r.Name] || seen[r.Says] {
			t.Errorf("rule %q says %q", r.Name, r.Says)
		}
		seen[r.Name], seen[r.Says] = true, true
	}
}

// TestRunWithoutAFramework is the control too: the store that the mutants bend
// passes.
func TestRunWithoutAFramework(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := Run(t.Context(), bubble(bend{}.open))
		if err := report.Err(); err != nil {
			t.Error(err)
		}
		if len(report.Skipped) != 1 || report.Skipped[0].Name != "together/two-handles" {
			t.Errorf("skipped: %v", report.Skipped)
		}
		if n := len(report.Kept) + len(report.Skipped); n != len(Rules()) {
			t.Errorf("%d of %d rules are in the report", n, len(Rules()))
		}
	})
}

// open2 is a handle whose end does not end the store.
type open2 struct{ driver.Store }

func (open2) Close() error { return nil }

func TestSecondHandle(t *testing.T) {
	rules := named(t, "together/two-handles")
	for _, same := range []bool{true, false} {
		h := bubble(bend{}.open)
		h.Second = func(_ context.Context, first driver.Store) (driver.Store, error) {
			if same {
				return open2{first}, nil
			}
			return bend{}.open(), nil
		}
		synctest.Test(t, func(t *testing.T) {
			if report := runRules(t.Context(), h, rules); (len(report.Broken) == 0) != same {
				t.Errorf("handles on the same data: %v, report: %v", same, report.Err())
			}
		})
	}
}

func TestHarnessThatCannotRun(t *testing.T) {
	failing := errors.New("no route to the store")
	for name, h := range map[string]Harness{
		"no Open":        {},
		"negative lease": {Open: bubble(bend{}.open).Open, Lease: -time.Second},
		"no store":       {Open: func(context.Context) (driver.Store, error) { return nil, failing }},
		"no time":        {Open: bubble(bend{}.open).Open, Pass: func(context.Context, time.Duration) error { return failing }},
	} {
		if report := runRules(t.Context(), h, named(t, "takeover/in-doubt")); report.Err() == nil {
			t.Errorf("%s: the run found nothing", name)
		}
	}
}

func TestRealTime(t *testing.T) {
	h := Harness{Open: bubble(bend{}.open).Open, Lease: 5 * time.Millisecond}
	if err := runRules(t.Context(), h, named(t, "takeover/in-doubt")).Err(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runRules(ctx, h, named(t, "takeover/in-doubt")).Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

package effecttest_test

import (
	"slices"
	"testing"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/effecttest"
	"github.com/oncefence/oncefence/fence/driver"
)

func names(rows []effecttest.Row) []string {
	var out []string
	for _, row := range rows {
		out = append(out, row.Name)
	}
	return out
}

func TestGoodEffectsPassEveryRow(t *testing.T) {
	forever := effect.IdempotentOptions{Remembers: effect.Forever}
	immediately := effect.ProbedOptions{Settled: effect.Immediately}
	single := map[driver.Kind][]string{
		driver.KindIdempotent:  {"first run", "run twice", "crash before the effect", "crash after the effect", "context already over", "answered late", "resumed as a zombie", "refused for now", "refused for good"},
		driver.KindProbed:      {"first run", "crash before the effect", "crash after the effect", "context already over", "answered late", "resumed as a zombie", "refused for now", "refused for good"},
		driver.KindAtMostOnce:  {"first run", "context already over", "answered late", "refused for now", "refused for good"},
		driver.KindAtLeastOnce: {"first run", "run twice", "crash before the effect", "crash after the effect", "context already over", "answered late", "refused for now", "refused for good"},
	}
	makers := map[string]func(l *ledger) effect.Effect{
		"Idempotent":       func(l *ledger) effect.Effect { return effect.Idempotent(l.good(true), forever) },
		"IdempotentBatch":  func(l *ledger) effect.Effect { return effect.IdempotentBatch(each(l.good(true)), forever) },
		"Probed":           func(l *ledger) effect.Effect { return effect.Probed(l.good(false), l.probe, immediately) },
		"ProbedBatch":      func(l *ledger) effect.Effect { return effect.ProbedBatch(each(l.good(false)), l.probe, immediately) },
		"AtMostOnce":       func(l *ledger) effect.Effect { return effect.AtMostOnce(l.good(false), nil) },
		"AtMostOnceBatch":  func(l *ledger) effect.Effect { return effect.AtMostOnceBatch(each(l.good(false)), nil) },
		"AtLeastOnce":      func(l *ledger) effect.Effect { return effect.AtLeastOnce(l.good(false), nil) },
		"AtLeastOnceBatch": func(l *ledger) effect.Effect { return effect.AtLeastOnceBatch(each(l.good(false)), nil) },
	}
	for name, maker := range makers {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			e := maker(l)
			report := l.run(t, e)
			if err := report.Err(); err != nil {
				t.Errorf("a good effect fails:\n%v", report)
			}
			for _, row := range report.Rows {
				if row.Result != effecttest.Passed || row.Rule == "" {
					t.Errorf("row %q: %v, rule %q, %s", row.Name, row.Result, row.Rule, row.Verdict)
				}
			}
			want := single[e.Kind()]
			if e.IsBatch() {
				want = append(slices.Clone(want), "several in one call")
			}
			if got := names(report.Rows); !slices.Equal(got, want) || report.Kind != e.Kind() {
				t.Errorf("kind %v has the rows %q, want %q", report.Kind, got, want)
			}
		})
	}
}

// An effect that never looks at its context cannot be stopped in the middle.
// That is no fault where a repeat does no harm.
func TestAnEffectThatIgnoresItsContext(t *testing.T) {
	l := newLedger()
	report := l.run(t, idempotent(ignoring(l)))
	for _, row := range report.Rows {
		want := effecttest.Passed
		if row.Name == "refused for now" || row.Name == "refused for good" {
			continue // it knows no refusals
		}
		if row.Result != want {
			t.Errorf("row %q: %v, %s", row.Name, row.Result, row.Verdict)
		}
	}
}

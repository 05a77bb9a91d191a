package effecttest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/effecttest"
)

// At whatever call the sink cannot be looked into, the row of that call fails
// and says so, and only that one.
func TestASinkThatCannotBeLookedIntoOnce(t *testing.T) {
	broken := errors.New("no connection to the sink")
	for name, maker := range map[string]func(l *ledger) effect.Effect{
		"idempotent": func(l *ledger) effect.Effect { return idempotent(l.good(true)) },
		"probed": func(l *ledger) effect.Effect {
			return effect.ProbedBatch(each(l.good(false)), l.probe, effect.ProbedOptions{Settled: effect.Immediately})
		},
		"at most once": func(l *ledger) effect.Effect { return atMostOnce(l.good(false)) },
	} {
		for at := 1; ; at++ {
			l := newLedger()
			calls := 0
			report := l.run(t, maker(l), func(c *effecttest.Config) {
				c.Applied = func(ctx context.Context, in effect.Input) (int, error) {
					if calls++; calls == at {
						return 0, broken
					}
					return l.applied(ctx, in)
				}
			})
			if calls < at {
				if at < 10 {
					t.Errorf("%s: the sink was looked into only %d times", name, calls)
				}
				break
			}
			failed := 0
			for _, row := range report.Rows {
				if row.Result == effecttest.Failed {
					failed++
				}
			}
			if err := report.Err(); failed != 1 || !strings.Contains(err.Error(), broken.Error()) {
				t.Errorf("%s, look %d: %d rows fail: %v", name, at, failed, err)
			}
		}
	}
}

// The same for an effect that answers wrongly once, whichever run it is: a row
// fails or the answer was one that the rule allows, but never a panic, and
// never a report without an end.
func TestAnEffectThatFailsOnce(t *testing.T) {
	found := 0
	for at := 1; ; at++ {
		l := newLedger()
		runs := 0
		report := l.run(t, idempotent(when(l.good(true), func(context.Context, effect.Input) (bool, error) {
			runs++
			return runs == at, errors.New("once")
		})))
		if runs < at {
			break
		}
		if len(report.Rows) != 9 {
			t.Errorf("run %d: rows %q", at, names(report.Rows))
		}
		if report.Err() != nil {
			found++
		}
	}
	if found < 5 {
		t.Errorf("only %d of the runs that failed were noticed", found)
	}
}

package effecttest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/effecttest"
)

func TestWrongConfig(t *testing.T) {
	l := newLedger()
	good := l.config(atMostOnce(l.good(false)))
	tests := []struct {
		name   string
		change func(*effecttest.Config)
		says   string
	}{
		{"no effect", func(c *effecttest.Config) { c.Effect = effect.Effect{} }, "Effect: no effect kind"},
		{"wrong effect", func(c *effecttest.Config) { c.Effect = effect.AtMostOnce(nil, nil) }, "the function is nil"},
		{"no look into the sink", func(c *effecttest.Config) { c.Applied = nil }, "Applied is nil"},
		{"negative limit", func(c *effecttest.Config) { c.Limit = -time.Second }, "Limit is -1s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := good
			tt.change(&c)
			report := effecttest.Run(t.Context(), c)
			checkFails(t, report, []string{"configuration"}, tt.says)
			if len(report.Rows) != 1 {
				t.Errorf("rows %q", names(report.Rows))
			}
		})
	}
}

func TestEveryRecordHasItsOwnKeyAndEffectID(t *testing.T) {
	l := newLedger()
	seen := map[string]string{}
	f := func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		if !strings.HasPrefix(in.Key, "orders:0::A:effecttest-") || in.Namespace != "%-:billing" || string(in.Payload) != "order" {
			t.Errorf("input %+v", in)
		}
		if in.Token == 0 || in.Attempt == 0 || in.FirstSeen.IsZero() || len(in.EffectID) != 32 {
			t.Errorf("input %+v is not filled in", in)
		}
		if key, ok := seen[in.EffectID]; ok && key != in.Key {
			t.Errorf("effect id %s of %q and %q", in.EffectID, key, in.Key)
		}
		seen[in.EffectID] = in.Key
		return l.good(true)(ctx, in)
	}
	report := l.run(t, idempotent(f), func(c *effecttest.Config) {
		c.Input = effect.Input{Key: "orders:0::A", Namespace: "%-:billing", EffectID: "not this", Payload: []byte("order")}
	})
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if len(seen) < len(report.Rows) {
		t.Errorf("%d records for %d rows", len(seen), len(report.Rows))
	}
}

func TestEffectIDIsTheConsumers(t *testing.T) {
	l := newLedger()
	var got string
	f := func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		if got == "" {
			got = in.EffectID
		}
		return l.good(true)(ctx, in)
	}
	l.run(t, idempotent(f), func(c *effecttest.Config) {
		c.NewInput = func(n int) effect.Input {
			in := effect.Input{Namespace: "%-:billing", Key: "orders:3:c-9:A-17"}
			if n > 1 {
				in.Key = fmt.Sprint("other-", n)
			}
			return in
		}
	})
	// SHA-256("oncefence-effect-1:%-:billing:orders:3:c-9:A-17"), first half.
	if want := "edcc9b837b40eff5af0258602497b008"; got != want {
		t.Errorf("effect id %s, want %s", got, want)
	}
}

func TestNewInput(t *testing.T) {
	l := newLedger()
	calls := 0
	report := l.run(t, idempotent(l.good(true)), func(c *effecttest.Config) {
		c.NewInput = func(n int) effect.Input {
			if calls++; n != calls {
				t.Errorf("called with %d for the %dth time", n, calls)
			}
			return effect.Input{Key: fmt.Sprint("k", n), EffectID: fmt.Sprint("mine-", n)}
		}
	})
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if l.held["mine-1"] != 1 {
		t.Errorf("the effect id of NewInput was not used: %v", l.held)
	}
}

func TestNewInputThatRepeatsItself(t *testing.T) {
	for _, key := range []string{"always", ""} {
		l := newLedger()
		report := l.run(t, idempotent(l.good(true)), func(c *effecttest.Config) {
			c.NewInput = func(int) effect.Input { return effect.Input{Key: key} }
		})
		if err := report.Err(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("returned the key %q, which is empty or was used before", key)) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

func TestASinkThatCannotBeLookedInto(t *testing.T) {
	l := newLedger()
	broken := errors.New("no rights on this table")
	report := l.run(t, atMostOnce(l.good(false)), func(c *effecttest.Config) {
		c.Applied = func(context.Context, effect.Input) (int, error) { return 0, broken }
	})
	checkFails(t, report, []string{"first run"}, "Applied cannot say what the sink holds")
}

func TestASinkThatCountsEverything(t *testing.T) {
	l := newLedger()
	report := l.run(t, atMostOnce(l.good(false)), func(c *effecttest.Config) {
		c.Applied = func(context.Context, effect.Input) (int, error) { return 17, nil }
	})
	checkFails(t, report, []string{"first run"}, "the sink holds 17 effects for an id that is new")
}

func TestTheOtherRowsAreNotTriedAfterAFailedFirstRun(t *testing.T) {
	l := newLedger()
	runs := 0
	f := func(context.Context, effect.Input) (effect.Receipt, error) { runs++; return effect.Receipt{}, errBusy }
	report := l.run(t, idempotent(f))
	for _, row := range report.Rows[1:] {
		if row.Result != effecttest.NotTried || row.Verdict != "the first run failed" {
			t.Errorf("%q: %v, %s", row.Name, row.Result, row.Verdict)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs, want 1", runs)
	}
}

func TestTheEndOfTheContextEndsTheTest(t *testing.T) {
	l := newLedger()
	ctx, cancel := context.WithCancel(t.Context())
	f := func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		cancel()
		l.add(in)
		return effect.Receipt{}, nil
	}
	report := effecttest.Run(ctx, l.config(atMostOnce(f)))
	if report.Rows[0].Result != effecttest.Passed {
		t.Errorf("first row %+v", report.Rows[0])
	}
	for _, row := range report.Rows[1:] {
		if row.Result != effecttest.NotTried || !strings.Contains(row.Verdict, "the test was stopped: context canceled") {
			t.Errorf("%q: %v, %s", row.Name, row.Result, row.Verdict)
		}
	}
}

func TestTheProbeIsAskedAfterSettled(t *testing.T) {
	tests := []struct {
		settled, max time.Duration
		early        time.Duration // the least wait that must be seen
		note         bool
	}{
		{time.Second, 0, time.Second, false},
		{time.Hour, 0, effecttest.DefaultMaxSettled, true},
		{time.Hour, 2 * time.Hour, time.Hour, false},
		{time.Hour, -1, 0, true},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			l := newLedger()
			var ran time.Time
			least := time.Duration(1<<63 - 1)
			f := func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
				defer func() { ran = time.Now() }()
				return l.good(false)(ctx, in)
			}
			p := func(ctx context.Context, in effect.Input) (effect.Finding, error) {
				if times, _, _ := l.state(in); times > 0 {
					least = min(least, time.Since(ran))
				}
				return l.probe(ctx, in)
			}
			e := effect.Probed(f, p, effect.ProbedOptions{Settled: tt.settled})
			report := effecttest.Run(t.Context(), l.config(e, func(c *effecttest.Config) { c.MaxSettled = tt.max }))
			if err := report.Err(); err != nil {
				t.Error(err)
			}
			if least != tt.early {
				t.Errorf("Settled %v, at most %v: asked after %v, want %v", tt.settled, tt.max, least, tt.early)
			}
			row, _ := report.Row("crash after the effect")
			if noted := strings.Contains(row.Verdict, "raise MaxSettled"); noted != tt.note {
				t.Errorf("Settled %v, at most %v: note %q", tt.settled, tt.max, row.Verdict)
			}
		})
	}
}

func TestAProbeThatNeedsTime(t *testing.T) {
	for needed, ok := range map[int]bool{2: true, 3: true, 4: false} {
		l := newLedger()
		asked := map[string]int{}
		p := func(ctx context.Context, in effect.Input) (effect.Finding, error) {
			if asked[in.EffectID]++; asked[in.EffectID] < needed {
				return effect.CannotSay(), nil
			}
			return l.probe(ctx, in)
		}
		e := effect.Probed(l.good(false), p, effect.ProbedOptions{Settled: effect.Immediately, ProbeAttempts: 3, ProbeBackoff: 10 * time.Millisecond})
		if err := l.run(t, e).Err(); (err == nil) != ok {
			t.Errorf("a probe that answers the %dth time, of 3: %v", needed, err)
		}
	}
}

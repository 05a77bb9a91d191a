package effecttest_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/effecttest"
)

// hanging never returns when its context ends at the nth look.
func hanging(l *ledger, n int, never <-chan struct{}) effect.Func {
	return func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		for range n - 1 {
			if err := ctx.Err(); err != nil {
				return effect.Receipt{}, effect.Temporary(err)
			}
		}
		if ctx.Err() != nil {
			<-never
		}
		return l.good(true)(context.WithoutCancel(ctx), in)
	}
}

func TestAnEffectThatOutlivesItsContext(t *testing.T) {
	tests := []struct {
		look     int
		fails    string
		notTried string
	}{
		{1, "context already over", "answered late"},
		{2, "answered late", ""},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			never := make(chan struct{})
			defer synctest.Wait()
			defer close(never)
			l := newLedger()
			start := time.Now()
			report := effecttest.Run(t.Context(), l.config(atMostOnce(hanging(l, tt.look, never))))
			checkFails(t, report, []string{tt.fails}, "did not return within 5s of the end of its context")
			if row, _ := report.Row(tt.notTried); tt.notTried != "" && row.Result != effecttest.NotTried {
				t.Errorf("%q: %v, want not tried", tt.notTried, row.Result)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("the report took %v", took)
			}
		})
	}
}

func TestAnEffectThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		defer synctest.Wait()
		defer close(never)
		f := func(context.Context, effect.Input) (effect.Receipt, error) { <-never; return effect.Receipt{}, nil }
		l := newLedger()
		e := effect.AtMostOnce(f, &effect.AtMostOnceOptions{MaxRunTime: time.Minute})
		start := time.Now()
		report := effecttest.Run(t.Context(), l.config(e, func(c *effecttest.Config) { c.Limit = time.Second }))
		checkFails(t, report, []string{"first run"}, "did not return within 1s")
		if took := time.Since(start); took != time.Minute+time.Second {
			t.Errorf("given up after %v, want MaxRunTime and Limit", took)
		}
	})
}

func TestABatchThatHangsWithSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		defer synctest.Wait()
		defer close(never)
		l := newLedger()
		e := effect.AtMostOnceBatch(func(ctx context.Context, in []effect.Input) []effect.Outcome {
			if len(in) > 1 {
				<-never
			}
			return each(l.good(false))(ctx, in)
		}, nil)
		checkFails(t, effecttest.Run(t.Context(), l.config(e)), []string{"several in one call"}, "did not return within 5s")
	})
}

// Where two runs cannot stand side by side no older one can be paused. This
// waits in real time: a mutex is nothing that a bubble sees through.
func TestAnEffectThatLooksAtItsContextUnderALock(t *testing.T) {
	l := newLedger()
	var mu sync.Mutex
	e := idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		mu.Lock()
		defer mu.Unlock()
		return l.good(true)(ctx, in)
	})
	report := effecttest.Run(t.Context(), l.config(e, func(c *effecttest.Config) {
		c.Limit, c.LandsWithin, c.MaxSettled = 50*time.Millisecond, -1, -1
	}))
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	row, ok := report.Row("resumed as a zombie")
	if !ok || row.Result != effecttest.NotTried || row.Verdict == "" {
		t.Errorf("row %+v, want it not tried, with the reason", row)
	}
}

package fence_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
)

// Field fault: the goroutine that ran the effect is gone and nobody says so.
func TestRenewalEndsWithTheMaximumRunTime(t *testing.T) {
	for name, maxRun := range map[string]time.Duration{"a minute": time.Minute, "none": 0, "negative": -time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFaulty()
				s, other := open(t, store, nil), open(t, store.Store, nil)
				start := time.Now()
				var told *lost
				var h *fence.Hold
				var effect sync.WaitGroup
				effect.Go(func() {
					h = claim(t, s, request(1), driver.New).Hold
					told = watch(h)
					h.Started(time.Now(), maxRun)
					runtime.Goexit()
				})
				beside := claim(t, s, request(2), driver.New).Hold
				effect.Wait()
				bound := max(maxRun, 0) + 10*time.Second
				if maxRun > 0 {
					pass(maxRun)
					claim(t, other, request(1), driver.Held)
					pass(bound - maxRun)
				} else {
					pass(bound)
				}
				pass(time.Millisecond)
				if !driver.Time(get(t, s, 1).LeaseEnd).Before(start.Add(bound)) && get(t, s, 1).LeaseEnd != driver.Micros(start.Add(bound)) {
					t.Errorf("the lease ends %v after the start, want at most %v", driver.Time(get(t, s, 1).LeaseEnd).Sub(start), bound)
				}
				claim(t, other, request(1), driver.InDoubt).Hold.Drop()
				if told.calls.Load() != 1 || time.Unix(0, told.at.Load()).After(start.Add(bound)) {
					t.Errorf("OnLost was called %d times", told.calls.Load())
				}
				if n := fence.Renewing(s); n != 1 {
					t.Errorf("%d holds are kept, want only the other one", n)
				}
				if !beside.Live(time.Now()) {
					t.Error("the hold beside it was not renewed")
				}
				h.Drop()
				beside.Drop()
			})
		})
	}
}

func TestFinishedLiftsTheMaximumRunTime(t *testing.T) {
	for name, after := range map[string]time.Duration{
		"in time": 30 * time.Second, "after the limit": 63 * time.Second, "after the lease": 5 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, newFaulty(), nil)
				h := claim(t, s, request(1), driver.New).Hold
				h.Started(time.Now(), time.Minute)
				pass(after)
				h.Finished()
				synctest.Wait()
				pass(time.Hour) // its seal fails for so long
				if !h.Live(time.Now()) || fence.Renewing(s) != 1 {
					t.Errorf("live %v, %d holds renewed", h.Live(time.Now()), fence.Renewing(s))
				}
				apply(t, s, seal(h), driver.OK)
				h.Drop()
				h.Finished()
				if n := fence.Renewing(s); n != 0 {
					t.Errorf("Finished after Drop: %d holds renewed", n)
				}
			})
		})
	}
}

func TestContextEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		start := time.Now()
		h := claim(t, s, request(1), driver.New).Hold
		ctx, cancel := h.Context(t.Context(), time.Hour)
		defer cancel()
		pass(time.Minute)
		if ctx.Err() != nil {
			t.Fatalf("the context ended after %v: %v", time.Since(start), context.Cause(ctx))
		}
		store.onApply(down)
		began := time.Now()
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), fence.ErrLeaseLost) || time.Since(began) > 7500*time.Millisecond {
			t.Errorf("cause = %v, %v after the store was gone", context.Cause(ctx), time.Since(began))
		}
		store.onApply(nil)
		h.Drop()
	})
}

func TestContextEndsWithTheMaximumRunTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), nil)
		start := time.Now()
		h := claim(t, s, request(1), driver.New).Hold
		ctx, cancel := h.Context(t.Context(), time.Minute)
		defer cancel()
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), fence.ErrLeaseLost) || time.Since(start) != time.Minute {
			t.Errorf("err = %v, cause = %v after %v", ctx.Err(), context.Cause(ctx), time.Since(start))
		}
		if !h.Live(time.Now()) {
			t.Error("no lease is left to write the outcome")
		}
		h.Drop()
		parent, stop := context.WithCancel(t.Context())
		h = claim(t, s, request(2), driver.New).Hold
		ctx, cancel = h.Context(parent, time.Minute)
		defer cancel()
		stop()
		synctest.Wait()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("err = %v after the parent ended", ctx.Err())
		}
		h.Drop()
	})
}

// twoClocks is a machine whose clocks can be moved apart.
type twoClocks struct {
	mu              sync.Mutex
	start           time.Time
	wall, monotonic time.Duration
}

func (c *twoClocks) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	return fence.TwoClocks(now.Add(c.wall), now.Sub(c.start)+c.monotonic)
}

func (c *twoClocks) move(wall, monotonic time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall += wall
	c.monotonic += monotonic
}

func TestLeaseEndsOnTheClockThatSaysSoFirst(t *testing.T) {
	for _, tt := range []struct {
		name            string
		wall, monotonic time.Duration
		dead            bool
	}{
		{"nothing moves", 0, 0, false},
		{"wall clock set ahead", 8 * time.Second, 0, true},
		{"wall clock set back", -time.Hour, 0, false},
		{"machine slept", time.Minute, 0, true},
		{"only the monotonic clock went on", 0, 8 * time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFaulty()
				clocks := &twoClocks{start: time.Now()}
				f := quiet(t, store, nil)
				fence.UseClock(f, clocks.now)
				s, err := f.Open(t.Context(), namespace(t))
				if err != nil {
					t.Fatal(err)
				}
				h := claim(t, s, request(1), driver.New).Hold
				told := watch(h)
				store.onApply(down)
				start := time.Now()
				clocks.move(tt.wall, tt.monotonic)
				if live := h.Live(clocks.now()); live == tt.dead {
					t.Errorf("live = %v at once", live)
				}
				pass(1300 * time.Millisecond) // an eighth of the lease, and a little
				if calls := told.calls.Load(); (calls == 1) != tt.dead {
					t.Errorf("OnLost was called %d times", calls)
				}
				if !tt.dead {
					pass(6200*time.Millisecond - 1)
					told.want(t, 0, start, 0)
					pass(1)
					told.want(t, 1, start, 7500*time.Millisecond)
				}
				store.onApply(nil)
				pass(5 * time.Second)
				if !h.Live(clocks.now()) {
					t.Error("the lease was not resumed")
				}
				h.Drop()
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The limit of the maximum run time does not wait for a clock that was set back.
func TestMaximumRunTimeGoesByBothClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		clocks := &twoClocks{start: time.Now()}
		f := quiet(t, store, nil)
		fence.UseClock(f, clocks.now)
		s, err := f.Open(t.Context(), namespace(t))
		if err != nil {
			t.Fatal(err)
		}
		h := claim(t, s, request(1), driver.New).Hold
		h.Started(clocks.now(), time.Minute)
		clocks.move(-time.Hour, 0)
		pass(time.Minute)
		store.calls(driver.Renew)
		pass(time.Minute)
		if n := len(store.calls(driver.Renew)); n != 0 {
			t.Errorf("%d renewals after the maximum run time", n)
		}
		h.Drop()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// With or without a verdict before them, and not before the attempt ended: a
// probe would be asked too early.
func TestHandOverAndBuryCarryTheEndOfTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), nil)
		doubt := fence.Verdict{InDoubt: true, Reason: "no answer"}
		handOver := (*fence.Hold).HandOver
		bury := func(h *fence.Hold, v fence.Verdict) driver.Transition { return h.Bury(v, 1) }
		retry := func(h *fence.Hold) driver.Transition { return h.Retry(doubt, time.Second) }
		giveUp := func(h *fence.Hold) driver.Transition { return h.GiveUp(doubt) }
		for n, tt := range []struct {
			verdict func(*fence.Hold) driver.Transition
			end     func(*fence.Hold, fence.Verdict) driver.Transition
		}{{nil, handOver}, {retry, handOver}, {nil, bury}, {giveUp, bury}} {
			h := claim(t, s, request(n), driver.New).Hold
			pass(time.Minute)
			ended := time.Now()
			if tt.verdict != nil {
				apply(t, s, tt.verdict(h), driver.OK)
				pass(time.Second) // the copy is produced
			}
			apply(t, s, tt.end(h, doubt), driver.OK)
			h.Drop()
			if r := get(t, s, n); driver.Time(r.AttemptEnd).Before(ended) || !r.InDoubt {
				t.Errorf("case %d: %v, in doubt %v, the attempt ended %v before it did", n, r.State, r.InDoubt, ended.Sub(driver.Time(r.AttemptEnd)))
			}
		}
	})
}

// A holder that only finishes what another one left keeps that one's time.
func TestGivingUpKeepsTheEndOfTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), nil)
		h := claim(t, s, request(1), driver.New).Hold
		apply(t, s, h.GiveUp(fence.Verdict{InDoubt: true, Reason: "no answer"}), driver.OK)
		h.Drop() // it dies before the dead letter
		ended := get(t, s, 1).AttemptEnd
		pass(time.Minute)
		h = claim(t, s, request(1), driver.GivingUp).Hold
		apply(t, s, h.Bury(fence.Verdict{InDoubt: true, Reason: h.Record().Reason}, 1), driver.OK)
		h.Drop()
		if r := get(t, s, 1); r.AttemptEnd != ended || r.Reason != "no answer" {
			t.Errorf("the attempt ended at %d, want %d; reason %q", r.AttemptEnd, ended, r.Reason)
		}
	})
}

func TestRetriesInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), nil)
		r := request(1)
		r.InPlace = true
		h := claim(t, s, r, driver.New).Hold
		for attempt := uint32(1); attempt <= 3; attempt++ {
			if got := h.Record(); got.Attempt != attempt || got.Step != attempt-1 {
				t.Fatalf("the hold speaks of attempt %d, step %d, want %d and %d", got.Attempt, got.Step, attempt, attempt-1)
			}
			h.Started(time.Now(), time.Second)
			h.Finished()
			apply(t, s, h.Retry(fence.Verdict{}, time.Minute), driver.OK)
			pass(time.Minute)
			begin := h.Begin()
			apply(t, s, begin, driver.OK)
			apply(t, s, begin, driver.Repeated)
			h.Begun()
		}
		apply(t, s, seal(h), driver.OK)
		h.Drop()
		if r := get(t, s, 1); r.Attempt != 4 || r.State != driver.Done {
			t.Errorf("record: %+v", r)
		}
	})
}

package fence_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
)

// lost counts the calls of OnLost and keeps the time of the first.
type lost struct {
	calls atomic.Int32
	at    atomic.Int64
}

func watch(h *fence.Hold) *lost {
	l := &lost{}
	h.OnLost(func() {
		if l.calls.Add(1) == 1 {
			l.at.Store(time.Now().UnixNano())
		}
	})
	return l
}

// want checks that OnLost was called n times, the first time after from start.
func (l *lost) want(t *testing.T, n int32, start time.Time, after time.Duration) {
	t.Helper()
	if calls := l.calls.Load(); calls != n {
		t.Errorf("OnLost was called %d times, want %d", calls, n)
	} else if n > 0 {
		if got := time.Unix(0, l.at.Load()).Sub(start); got != after {
			t.Errorf("OnLost was called after %v, want %v", got, after)
		}
	}
}

func TestRenewalsKeepAClaimAsLongAsItIsHeld(t *testing.T) {
	for _, lease := range []time.Duration{fence.MinLease, 250 * time.Millisecond, 10 * time.Second} {
		t.Run(lease.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFaulty()
				s, other := open(t, store, nil), open(t, store.Store, nil)
				r := request(1)
				r.Lease = lease
				h := claim(t, s, r, driver.New).Hold
				told := watch(h)
				for range 100 {
					pass(lease / 2)
					claim(t, other, request(1), driver.Held)
				}
				told.want(t, 0, time.Time{}, 0)
				if n := len(store.calls(driver.Renew)); n < 140 || n > 152 {
					t.Errorf("%d renewals in 50 leases, want one in a third of a lease", n)
				}
				apply(t, s, seal(h), driver.OK)
				h.Drop()
			})
		})
	}
}

func TestRenewalIsSentAtAThirdOfTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		r := request(1)
		r.Lease = 9 * time.Second
		h := claim(t, s, r, driver.New).Hold
		start := time.Now()
		var sent []time.Duration
		store.onApply(func(ctx context.Context, transitions []driver.Transition) []driver.Applied {
			sent = append(sent, time.Since(start))
			return store.Store.Apply(ctx, namespaceText, transitions)
		})
		pass(10 * time.Second)
		if want := []time.Duration{3 * time.Second, 6 * time.Second, 9 * time.Second}; !slices.Equal(sent, want) {
			t.Errorf("renewed after %v, want %v", sent, want)
		}
		h.Drop()
		pass(time.Minute)
		if len(sent) != 3 {
			t.Errorf("%d renewals after Drop", len(sent)-3)
		}
	})
}

func TestManyHoldsAreRenewedInFewRequests(t *testing.T) {
	for name, tt := range map[string]struct{ holds, size int }{"claimed in batches": {10_000, 500}, "claimed one by one": {2_000, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				holds, size := tt.holds, tt.size
				store := newFaulty()
				s := open(t, store, nil)
				before := runtime.NumGoroutine()
				var all []*fence.Hold
				requests := make([]*fence.Request, holds)
				for i := range requests {
					requests[i] = request(i)
				}
				for batch := range slices.Chunk(requests, size) {
					for _, c := range s.Claim(t.Context(), batch) {
						if c.Answer != driver.New {
							t.Fatalf("answered %v (%v)", c.Answer, c.Err)
						}
						all = append(all, c.Hold)
					}
					travel(3 * time.Second / time.Duration(holds/size)) // spread over 3 s
				}
				if n := runtime.NumGoroutine() - before; n > 2 {
					t.Errorf("%d goroutines were added for %d holds", n, holds)
				}
				store.calls(driver.Renew)
				pass(20 * time.Second)
				renewed := 0
				sizes := store.calls(driver.Renew)
				for _, n := range sizes {
					renewed += n
					if n > 512 {
						t.Fatalf("a renewal of %d leases, at most 512 belong in a request", n)
					}
				}
				// At a third of 10 s each is renewed 6 times, at a quarter 8 times.
				if renewed < 5*holds || renewed > 9*holds {
					t.Errorf("%d renewals of %d leases, want 6 to 8 each", renewed, holds)
				}
				if least := renewed / 512; len(sizes) > least+40 {
					t.Errorf("%d requests for %d renewals, want little more than %d", len(sizes), renewed, least)
				}
				for _, h := range all {
					if !h.Live(time.Now()) {
						t.Fatal("a lease was not renewed")
					}
					h.Drop()
				}
				if n := fence.Renewing(s); n != 0 {
					t.Errorf("%d holds are kept after Drop", n)
				}
			})
		})
	}
}

func TestHoldersAreToldInTimeWhenTheStoreIsUnreachable(t *testing.T) {
	for name, hook := range map[string]func(context.Context, []driver.Transition) []driver.Applied{"down": down, "hang": hang} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFaulty()
				s := open(t, store, nil)
				start := time.Now()
				first := claim(t, s, request(1), driver.New).Hold
				dropped := claim(t, s, request(2), driver.New).Hold
				watchFirst, watchDropped := watch(first), watch(dropped)
				store.onApply(hook)
				pass(3300 * time.Millisecond)
				later := claim(t, s, request(3), driver.New).Hold // while requests are under way
				watchLater := watch(later)
				dropped.Drop()
				pass(4200*time.Millisecond - 1)
				if !first.Live(time.Now()) {
					t.Error("the lease ended for the holder before three quarters of it")
				}
				pass(time.Minute)
				watchFirst.want(t, 1, start, 7500*time.Millisecond)
				watchLater.want(t, 1, start, 10800*time.Millisecond)
				watchDropped.want(t, 0, start, 0)
				if first.Live(time.Now()) || later.Live(time.Now()) || first.End().IsZero() {
					t.Error("a lease that ended is live, or counts as lost to another holder")
				}
				if n := len(store.calls(driver.Renew)); n < 10 {
					t.Errorf("%d renewals were tried in a minute", n)
				}
				again := watch(first)
				again.want(t, 1, time.Now(), 0)

				// Nobody took over: the lease resumes, and its end is told anew.
				store.onApply(nil)
				pass(4 * time.Second)
				if !first.Live(time.Now()) || !later.Live(time.Now()) {
					t.Fatal("a lease that nobody took over was not renewed after its end")
				}
				again = watch(first)
				pass(time.Minute)
				store.onApply(hook)
				pass(time.Minute)
				if again.calls.Load() != 1 || watchFirst.calls.Load() != 1 {
					t.Errorf("OnLost was called %d and %d times, want once each", watchFirst.calls.Load(), again.calls.Load())
				}
				store.onApply(nil)
				apply(t, s, seal(first), driver.OK)
				first.Drop()
				later.Drop()
			})
		})
	}
}

func TestLeaseLostToAnotherHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		seen := &observer{}
		s, other := open(t, store, &fence.Options{Observer: seen}), open(t, store.Store, nil)
		h := claim(t, s, request(1), driver.New).Hold
		store.onApply(down)
		pass(10*time.Second + time.Microsecond)
		next := claim(t, other, request(1), driver.InDoubt).Hold
		told := watch(h) // at once: the lease ended
		told.want(t, 1, time.Now(), 0)
		store.onApply(nil)
		pass(10 * time.Second)
		if h.Live(time.Now()) || !h.End().IsZero() || fence.Renewing(s) != 0 {
			t.Errorf("live %v, end %v, %d renewed: the key is another's", h.Live(time.Now()), h.End(), fence.Renewing(s))
		}
		told = watch(h)
		told.want(t, 1, time.Now(), 0)
		if _, gone := seen.renewals(); gone != 1 {
			t.Errorf("%d leases observed as lost, want 1", gone)
		}

		// Field fault: the stale holder neither releases nor seals nor hands over.
		before := get(t, s, 1)
		for _, tr := range []driver.Transition{h.Release(), seal(h), h.Retry(fence.Verdict{}, 0), h.HandOver(fence.Verdict{}), h.GiveUp(fence.Verdict{}), h.Bury(fence.Verdict{}, 1)} {
			if a := apply(t, s, tr, driver.Refused); a.Record.Token != next.Token() {
				t.Errorf("%v: refused with token %d, want the holder's, %d", tr.Op, a.Record.Token, next.Token())
			}
		}
		if after := get(t, s, 1); after.State != before.State || after.Token != before.Token || after.Attempt != before.Attempt {
			t.Errorf("the stale holder changed %+v to %+v", before, after)
		}
		apply(t, other, seal(next), driver.OK)
		apply(t, s, seal(h), driver.Refused)
		h.Drop()
		next.Drop()
	})
}

func TestOwnTransitionIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &observer{}
		s := open(t, newFaulty(), &fence.Options{Observer: seen})
		var told []*lost
		var holds []*fence.Hold
		for n, end := range []func(*fence.Hold) driver.Transition{
			seal,
			(*fence.Hold).Release,
			func(h *fence.Hold) driver.Transition { return h.HandOver(fence.Verdict{}) },
			func(h *fence.Hold) driver.Transition { return h.Bury(fence.Verdict{}, 1) },
		} {
			h := claim(t, s, request(n), driver.New).Hold
			told, holds = append(told, watch(h)), append(holds, h)
			apply(t, s, end(h), driver.OK)
		}
		pass(time.Minute) // nobody has called Drop yet
		for n, l := range told {
			l.want(t, 0, time.Time{}, 0)
			if holds[n].Live(time.Now()) {
				t.Errorf("hold %d is live after its claim ended", n)
			}
			holds[n].Drop()
		}
		if _, gone := seen.renewals(); gone != 0 {
			t.Errorf("%d leases observed as lost", gone)
		}
	})
}

func TestOneFailingRenewalIsNoOthersLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		start := time.Now()
		out := s.Claim(t.Context(), []*fence.Request{request(1), request(2), request(3)})
		var told [3]*lost
		for i := range out {
			told[i] = watch(out[i].Hold)
		}
		store.onApply(func(ctx context.Context, transitions []driver.Transition) []driver.Applied {
			applied := store.Store.Apply(ctx, namespaceText, transitions)
			for i := range applied {
				if transitions[i].Key == key(2).Digest() {
					applied[i] = driver.Applied{Err: errDown}
				}
			}
			return applied
		})
		pass(time.Minute)
		told[0].want(t, 0, start, 0)
		told[1].want(t, 1, start, 7500*time.Millisecond)
		told[2].want(t, 0, start, 0)
		for i := range out {
			out[i].Hold.Drop()
		}
	})
}

func TestLeasesOfOneBatchMayDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		start := time.Now()
		short, long := request(1), request(2)
		short.Lease, long.Lease = time.Second, time.Minute
		out := s.Claim(t.Context(), []*fence.Request{long, short})
		toldLong, toldShort := watch(out[0].Hold), watch(out[1].Hold)
		pass(5 * time.Minute)
		toldLong.want(t, 0, start, 0)
		toldShort.want(t, 0, start, 0)
		if n := len(store.calls(driver.Renew)); n > 930 {
			t.Errorf("%d renewal requests, want 900 for the short lease and little more", n)
		}
		for i := range out {
			out[i].Hold.Drop()
		}
	})
}

// observer counts what a fence reports.
type observer struct {
	mu            sync.Mutex
	ops           []string
	items, failed map[string]int
	renewed, lost int
}

func (o *observer) StoreCall(op string, items, failed int, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.items == nil {
		o.items, o.failed = make(map[string]int), make(map[string]int)
	}
	o.ops = append(o.ops, op)
	o.items[op] += items
	o.failed[op] += failed
}

func (o *observer) Renewed(renewed, lost int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.renewed += renewed
	o.lost += lost
}

func (o *observer) renewals() (renewed, lost int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.renewed, o.lost
}

func TestCloseTellsHoldersAndEndsRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		start := time.Now()
		out := s.Claim(t.Context(), []*fence.Request{request(1), request(2)})
		held, dropped := out[0].Hold, out[1].Hold
		toldHeld, toldDropped := watch(held), watch(dropped)
		dropped.Drop()
		pass(time.Second)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		toldHeld.want(t, 1, start, time.Second)
		toldDropped.want(t, 0, start, 0)
		if held.Live(time.Now()) {
			t.Error("a hold is live after Close")
		}
		store.calls(driver.Renew)
		pass(time.Minute)
		if n := len(store.calls(driver.Renew)); n != 0 {
			t.Errorf("%d renewals after Close", n)
		}
		if c := s.Claim(t.Context(), []*fence.Request{request(3)})[0]; !errors.Is(c.Err, fence.ErrClosed) {
			t.Errorf("a claim after Close was answered %v (%v)", c.Answer, c.Err)
		}
		held.Finished()
		apply(t, s, seal(held), driver.OK) // an applied effect is a fact
		held.Drop()
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("Close again: %v", err)
		}
	})
}

func TestClaimThatIsAnsweredAfterCloseIsNotLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		slowReply(store, time.Second)
		var wg sync.WaitGroup
		wg.Go(func() {
			c := s.Claim(context.Background(), []*fence.Request{request(1)})[0]
			if c.Err != nil || c.Hold.Live(time.Now()) {
				t.Errorf("answered %v (%v), live %v", c.Answer, c.Err, c.Hold.Live(time.Now()))
			}
			told := watch(c.Hold)
			told.want(t, 1, time.Now(), 0)
			apply(t, s, c.Hold.Release(), driver.OK)
			c.Hold.Drop()
		})
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// A store that ignores its context holds up Close no longer than ctx.
func TestCloseIsBoundedWhenARenewalHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		h := claim(t, s, request(1), driver.New).Hold
		let := make(chan struct{})
		store.onApply(func(ctx context.Context, transitions []driver.Transition) []driver.Applied {
			<-let
			return down(ctx, transitions)
		})
		pass(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("Close = %v after %v, want the deadline's error after 2s", err, time.Since(start))
		}
		close(let)
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("Close again: %v", err)
		}
		h.Drop()
	})
}

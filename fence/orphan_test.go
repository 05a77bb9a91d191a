package fence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
)

func TestAbandonReleasesAClaimWhoseReplyWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		loseReply(store)
		r := request(1)
		if c := s.Claim(t.Context(), []*fence.Request{r})[0]; c.Err == nil {
			t.Fatal("the reply was not lost")
		}
		store.onClaim(nil)
		store.onApply(down)
		s.Abandon(r)
		pass(30 * time.Second)
		if n := len(store.calls(driver.Release)); n < 20 || n > 40 {
			t.Errorf("%d releases were tried in 30 s, want one a second", n)
		}
		if state := get(t, s, 1).State; state != driver.Pending {
			t.Fatalf("with the store down the record is %v, want pending", state)
		}
		store.onApply(nil)
		pass(time.Second)
		if state := get(t, s, 1).State; state != driver.Absent {
			t.Fatalf("a second after the store is back the record is %v, want none", state)
		}
		claim(t, s, request(1), driver.New).Hold.Drop()
	})
}

func TestAbandonPutsBackWhatTheClaimFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		h := claim(t, s, request(1), driver.New).Hold
		apply(t, s, h.Bury(fence.Verdict{InDoubt: true, Reason: "crashed"}, 1), driver.OK)
		h.Drop()
		want := get(t, s, 1)
		loseReply(store)
		r := request(1)
		r.Attempt = 2
		s.Claim(t.Context(), []*fence.Request{r})
		store.onClaim(nil)
		if state := get(t, s, 1).State; state != driver.Pending {
			t.Fatalf("the record is %v, want pending", state)
		}
		s.Abandon(r)
		pass(time.Second)
		got := get(t, s, 1)
		if got.State != driver.Dead || !got.InDoubt || got.Token != want.Token || got.Attempt != 1 || got.Reason != want.Reason {
			t.Errorf("the record is %+v, want %+v", got, want)
		}
	})
}

// A request that is doubled on its way: the first copy is lost, the second
// arrives after its claim was abandoned, and released in vain.
func TestAbandonReleasesAClaimThatArrivesLate(t *testing.T) {
	for _, delay := range []time.Duration{50 * time.Millisecond, 5 * time.Second, 9900 * time.Millisecond, 10100 * time.Millisecond} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFaulty()
				s := open(t, store, nil)
				var arrived driver.Claimed
				var late sync.WaitGroup
				store.onClaim(func(_ context.Context, claims []driver.Claim) []driver.Claimed {
					late.Go(func() {
						travel(delay)
						arrived = store.Store.Claim(context.Background(), namespaceText, claims)[0]
					})
					return failClaims(claims)
				})
				r := request(1)
				s.Claim(t.Context(), []*fence.Request{r})
				store.onClaim(nil)
				s.Abandon(r)
				late.Wait()
				if tooLate := errors.Is(arrived.Err, driver.ErrTooLate); tooLate != (delay > fence.DefaultClaimTimeout) {
					t.Fatalf("the late claim was answered %v (%v)", arrived.Answer, arrived.Err)
				}
				pass(1100 * time.Millisecond)
				if state := get(t, s, 1).State; state != driver.Absent {
					t.Errorf("the record is %v, want none", state)
				}
				pass(20 * time.Second)
				store.calls(driver.Release)
				pass(time.Minute)
				if n := len(store.calls(driver.Release)); n != 0 {
					t.Errorf("%d more releases of a claim that cannot arrive any more", n)
				}
			})
		})
	}
}

// The time up to which a claim can arrive is that of its first sending, also
// when the store's clock went back since.
func TestAbandonAfterTheStoreClockWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jumpy := newJumpy()
		store := newFaulty()
		store.Store = jumpy
		s := open(t, store, nil)
		var late sync.WaitGroup
		store.onClaim(func(_ context.Context, claims []driver.Claim) []driver.Claimed {
			late.Go(func() {
				travel(35 * time.Second)
				if c := jumpy.Claim(context.Background(), "", claims)[0]; c.Answer != driver.New {
					t.Errorf("the late claim was answered %v (%v)", c.Answer, c.Err)
				}
			})
			return failClaims(claims)
		})
		r := request(1)
		s.Claim(t.Context(), []*fence.Request{r})
		jumpy.jump(-30 * time.Second)
		store.onClaim(nil)
		claim(t, s, request(2), driver.New).Hold.Drop() // the fence notices
		store.onClaim(func(_ context.Context, claims []driver.Claim) []driver.Claimed { return failClaims(claims) })
		s.Claim(t.Context(), []*fence.Request{r})
		store.onClaim(nil)
		s.Abandon(r)
		late.Wait()
		pass(2 * time.Second)
		claim(t, s, request(1), driver.New).Hold.Drop()
	})
}

func TestAbandonedRequestMayAskAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		loseReply(store)
		r := request(1)
		s.Claim(t.Context(), []*fence.Request{r})
		store.onClaim(nil)
		store.onApply(down) // the release waits
		s.Abandon(r)
		pass(time.Second)
		claim(t, s, r, driver.Held)
		store.onApply(nil)
		pass(time.Second)
		h := claim(t, s, r, driver.New).Hold
		pass(time.Minute)
		if !h.Live(time.Now()) || get(t, s, 1).Token != h.Token() {
			t.Error("the new claim was released in place of the abandoned one")
		}
		h.Drop()
	})
}

func TestAbandonLeavesAnsweredRequestsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), nil)
		granted, never := request(1), request(2)
		h := claim(t, s, granted, driver.New).Hold
		s.Abandon(granted, never)
		pass(time.Minute)
		if !h.Live(time.Now()) || get(t, s, 1).State != driver.Pending {
			t.Error("Abandon released an answered claim")
		}
		h.Drop()
	})
}

func TestAbandonManyInFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		loseReply(store)
		requests := make([]*fence.Request, 1500)
		for i := range requests {
			requests[i] = request(i % 1400) // some keys twice, in different batches
		}
		s.Claim(t.Context(), requests[:1400])
		s.Claim(t.Context(), requests[1400:])
		store.onClaim(nil)
		store.onApply(down)
		s.Abandon(requests...)
		pass(90 * time.Millisecond)
		if sizes := store.calls(driver.Release); len(sizes) != 1 {
			t.Errorf("an absent store was asked %d times in a row", len(sizes))
		}
		store.onApply(func(ctx context.Context, transitions []driver.Transition) []driver.Applied {
			seen := make(map[driver.Digest]bool)
			for i := range transitions {
				if seen[transitions[i].Key] {
					t.Errorf("a key stands twice in a batch of %d", len(transitions))
				}
				seen[transitions[i].Key] = true
			}
			return store.Store.Apply(ctx, namespaceText, transitions)
		})
		pass(20 * time.Millisecond)
		sizes := store.calls(driver.Release)
		for _, n := range sizes {
			if n > 512 {
				t.Errorf("a release of %d claims, at most 512 belong in a request", n)
			}
		}
		if len(sizes) > 4 {
			t.Errorf("%d requests to release 1500 claims: %v", len(sizes), sizes)
		}
		pass(12 * time.Second)
		for n := range 1400 {
			if state := get(t, s, n).State; state != driver.Absent {
				t.Fatalf("record %d is %v, want none", n, state)
			}
		}
	})
}

func TestCloseReleasesWhatCanStillArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		var late sync.WaitGroup
		store.onClaim(func(_ context.Context, claims []driver.Claim) []driver.Claimed {
			late.Go(func() {
				travel(4 * time.Second)
				store.Store.Claim(context.Background(), namespaceText, claims)
			})
			return failClaims(claims)
		})
		r := request(1)
		s.Claim(t.Context(), []*fence.Request{r})
		s.Abandon(r)
		start := time.Now()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("Close took %v, the claim arrived after 4 s", took)
		}
		late.Wait()
		if state := get(t, s, 1).State; state != driver.Absent {
			t.Errorf("the record is %v, want none", state)
		}
	})
}

func TestCloseIsBoundedWhenClaimsCannotBeReleased(t *testing.T) {
	for name, hook := range map[string]func(context.Context, []driver.Transition) []driver.Applied{"down": down, "hang": hang} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFaulty()
				s := open(t, store, nil)
				loseReply(store)
				r := request(1)
				s.Claim(t.Context(), []*fence.Request{r})
				store.onApply(hook)
				s.Abandon(r)
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				start := time.Now()
				if err := s.Close(ctx); err == nil || time.Since(start) > 3*time.Second {
					t.Errorf("Close = %v after %v, want an error after at most 3s", err, time.Since(start))
				}
				start = time.Now()
				if err := s.Close(context.Background()); err == nil || time.Since(start) > 15*time.Second {
					t.Errorf("without a deadline Close = %v after %v, want an error after some ten seconds", err, time.Since(start))
				}
				store.onApply(nil)
				if err := s.Close(t.Context()); err != nil {
					t.Errorf("with the store back: %v", err)
				}
				if state := get(t, s, 1).State; state != driver.Absent {
					t.Errorf("the record is %v, want none", state)
				}
			})
		})
	}
}

// Field fault: cancelled claims on a small pool, some of which the store makes
// all the same. Every answer belongs to its own claim, and a claim whose answer
// never came is unknown until it is asked again.
func TestCancelledClaimsAreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		pool := make(chan struct{}, 2)
		var proxy sync.WaitGroup
		store.onClaim(func(ctx context.Context, claims []driver.Claim) []driver.Claimed {
			reply := make(chan []driver.Claimed, 1)
			select {
			case pool <- struct{}{}:
			case <-ctx.Done():
				return failClaims(claims)
			}
			proxy.Go(func() {
				travel(25 * time.Millisecond)
				reply <- store.Store.Claim(context.Background(), namespaceText, claims)
				travel(25 * time.Millisecond)
				<-pool
			})
			select {
			case out := <-reply:
				return out
			case <-ctx.Done():
				return failClaims(claims)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2510*time.Millisecond)
		defer cancel()
		requests, answers := make([]*fence.Request, 200), make([]fence.Claimed, 200)
		var callers sync.WaitGroup
		for i := range requests {
			requests[i] = request(i)
			callers.Go(func() { answers[i] = s.Claim(ctx, requests[i:i+1])[0] })
		}
		callers.Wait()
		proxy.Wait()
		store.onClaim(nil)
		granted, unknown, made := 0, 0, 0
		for i, c := range answers {
			if c.Err != nil {
				unknown++
				if get(t, s, i).State == driver.Pending {
					made++
				}
				c = claim(t, s, requests[i], driver.New)
			} else {
				granted++
			}
			if c.Record.Token != get(t, s, i).Token || c.Hold.Key() != key(i) {
				t.Errorf("claim %d was answered with token %d, the record has %d", i, c.Record.Token, get(t, s, i).Token)
			}
			c.Hold.Drop()
		}
		if granted == 0 || unknown == 0 || made == 0 {
			t.Errorf("granted %d, unknown %d of which made %d: the test wants some of each", granted, unknown, made)
		}
	})
}

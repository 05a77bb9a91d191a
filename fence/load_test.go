package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/memfence"
)

// Many goroutines claim few keys on a store that loses replies, on real clocks:
// never two holders of a key, and every key ends sealed.
func TestManyGoroutinesOneHolder(t *testing.T) {
	const workers, keys = 8, 20
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	store := newFaulty()
	store.onClaim(func(ctx context.Context, claims []driver.Claim) []driver.Claimed {
		out := store.Store.Claim(ctx, namespaceText, claims)
		if rand.IntN(10) == 0 {
			return failClaims(claims) // the reply is lost
		}
		return out
	})
	store.onApply(func(ctx context.Context, transitions []driver.Transition) []driver.Applied {
		out := store.Store.Apply(ctx, namespaceText, transitions)
		if rand.IntN(10) == 0 {
			return down(ctx, transitions)
		}
		return out
	})
	s := open(t, store, &fence.Options{ClaimTimeout: time.Second})
	var inside [keys]atomic.Int32
	var sealed atomic.Int32
	var callers sync.WaitGroup
	for w := range workers {
		callers.Go(func() {
			for i := 0; sealed.Load() < keys && ctx.Err() == nil; i++ {
				n := (w + i) % keys
				r := request(n)
				c := s.Claim(ctx, []*fence.Request{r})[0]
				if c.Err != nil {
					if !errors.Is(c.Err, errDown) && !errors.Is(c.Err, driver.ErrTooLate) {
						t.Errorf("claim: %v", c.Err)
						return
					}
					s.Abandon(r)
				}
				if c.Hold == nil {
					travel(time.Millisecond)
					continue
				}
				if inside[n].Add(1) != 1 {
					t.Errorf("key %d has two holders", n)
				}
				run, cancel := c.Hold.Context(ctx, time.Minute)
				runtime.Gosched()
				cancel()
				inside[n].Add(-1)
				tr := seal(c.Hold)
				if rand.IntN(4) > 0 {
					tr = c.Hold.Release()
				}
				a := s.Apply(ctx, []driver.Transition{tr})[0]
				again := a.Err != nil
				for ; a.Err != nil && ctx.Err() == nil; a = s.Apply(ctx, []driver.Transition{tr})[0] {
				}
				c.Hold.Finished()
				// A release that is sent again may find the next holder.
				gone := again && tr.Op == driver.Release && a.Outcome == driver.Refused
				if a.Outcome != driver.OK && a.Outcome != driver.Repeated && !gone {
					t.Errorf("%v of key %d: %v", tr.Op, n, a.Outcome)
				}
				if tr.Op == driver.Seal {
					sealed.Add(1)
				}
				if !errors.Is(run.Err(), context.Canceled) {
					t.Errorf("run: %v", run.Err())
				}
				c.Hold.Drop()
			}
		})
	}
	callers.Wait()
	store.onApply(nil)
	if n := sealed.Load(); n != keys {
		t.Errorf("%d of %d keys were sealed", n, keys)
	}
	if n := fence.Renewing(s); n != 0 {
		t.Errorf("%d holds are left", n)
	}
}

// granting answers every claim with new and every transition with ok, without
// a record behind it: what remains is the cost of the fence.
type granting struct{ driver.Store }

func (granting) Claim(_ context.Context, _ string, claims []driver.Claim) []driver.Claimed {
	out := make([]driver.Claimed, len(claims))
	for i := range out {
		out[i].Answer, out[i].Now = driver.New, driver.Micros(time.Now())
		out[i].Record.Token = uint64(i) + 1
	}
	return out
}

func (granting) Apply(_ context.Context, _ string, transitions []driver.Transition) []driver.Applied {
	out := make([]driver.Applied, len(transitions))
	for i := range out {
		out[i].Outcome = driver.OK
	}
	return out
}

// round claims, seals and drops requests.
func round(ctx context.Context, s *fence.Space, requests []*fence.Request, transitions []driver.Transition) error {
	claimed := s.Claim(ctx, requests)
	for i := range claimed {
		if claimed[i].Hold == nil {
			return fmt.Errorf("answered %v (%w)", claimed[i].Answer, claimed[i].Err)
		}
		transitions[i] = claimed[i].Hold.Seal(driver.KindIdempotent, "ch_1", nil)
	}
	s.Apply(ctx, transitions)
	for i := range claimed {
		claimed[i].Hold.Drop()
	}
	return nil
}

func batch(size int) ([]*fence.Request, []driver.Transition) {
	requests := make([]*fence.Request, size)
	for i := range requests {
		requests[i] = request(i)
	}
	return requests, make([]driver.Transition, size)
}

func TestClaimAndSealAllocateLittle(t *testing.T) {
	s := open(t, granting{memfence.NewStore(nil)}, nil)
	requests, transitions := batch(512)
	perBatch := testing.AllocsPerRun(20, func() {
		if err := round(t.Context(), s, requests, transitions); err != nil {
			t.Fatal(err)
		}
	})
	if perRecord := perBatch / 512; perRecord > 1.25 {
		t.Errorf("%.2f allocations for a record that is claimed, sealed and dropped in a batch of 512, want little more than 1 (its Hold)", perRecord)
	}
}

// BenchmarkClaimSeal is what the fence costs on top of its store, per record.
func BenchmarkClaimSeal(b *testing.B) {
	for _, size := range []int{1, 512} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := open(b, granting{memfence.NewStore(nil)}, nil)
			requests, transitions := batch(size)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += size {
				if err := round(b.Context(), s, requests, transitions); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHoldLive is what the loop asks before each effect.
func BenchmarkHoldLive(b *testing.B) {
	s := open(b, granting{memfence.NewStore(nil)}, nil)
	h := s.Claim(b.Context(), []*fence.Request{request(1)})[0].Hold
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if !h.Live(now) {
			b.Fatal("not live")
		}
	}
	h.Drop()
}

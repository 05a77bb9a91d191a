package fence_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/memfence"
)

// jumpy is a store whose clock can be moved. What it does not need comes from
// the store that it embeds.
type jumpy struct {
	driver.Store
	mu      sync.Mutex
	ahead   time.Duration
	records map[driver.Digest]*driver.Record
	token   uint64
	marker  driver.Marker
}

func newJumpy() *jumpy {
	return &jumpy{Store: memfence.NewStore(nil), records: make(map[driver.Digest]*driver.Record)}
}

func (j *jumpy) now() int64 { return driver.Micros(time.Now().Add(j.ahead)) }

func (j *jumpy) jump(d time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ahead += d
}

func (j *jumpy) Claim(_ context.Context, _ string, claims []driver.Claim) []driver.Claimed {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]driver.Claimed, len(claims))
	for i := range claims {
		var next *driver.Record
		next, out[i] = claims[i].Decide(j.records[claims[i].Key], j.now(), func(prev uint64) uint64 {
			j.token = max(j.token, prev) + 1
			return j.token
		})
		if next != nil {
			j.records[claims[i].Key] = next
		}
	}
	return out
}

func (j *jumpy) Apply(_ context.Context, _ string, transitions []driver.Transition) []driver.Applied {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]driver.Applied, len(transitions))
	for i := range transitions {
		var next *driver.Record
		next, out[i] = transitions[i].Decide(j.records[transitions[i].Key], j.now())
		if next != nil {
			j.records[transitions[i].Key] = next
		}
	}
	return out
}

func (j *jumpy) Marker(_ context.Context, _ string, update driver.Marker) (driver.Marker, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.marker = j.marker.Merge(update)
	answer := j.marker
	answer.Now = j.now()
	return answer, nil
}

// askFor asks for key 1 every 100 ms until it is granted, and says after how
// long that was. It gives up after limit.
func askFor(t *testing.T, s *fence.Space, limit time.Duration) (h *fence.Hold, after time.Duration) {
	t.Helper()
	start, refused := time.Now(), 0
	for r := request(1); time.Since(start) < limit; pass(100 * time.Millisecond) {
		c := s.Claim(t.Context(), []*fence.Request{r})[0]
		if errors.Is(c.Err, driver.ErrTooLate) {
			refused++ // the store's clock jumped over the time that the claim named
			if refused > 1 {
				t.Fatal(c.Err)
			}
			continue
		}
		if c.Err != nil {
			t.Fatal(c.Err)
		}
		if c.Hold != nil {
			return c.Hold, time.Since(start)
		}
		if c.Left < 0 || c.Left > 10*time.Second {
			t.Errorf("held for %v, want at most the lease", c.Left)
		}
	}
	return nil, limit
}

func TestStoreClockJumpsForward(t *testing.T) {
	for _, tt := range []struct {
		name  string
		jumps []time.Duration // a second apart
	}{
		{"by much more than the margin", []time.Duration{time.Hour}},
		{"by a little more than the margin", []time.Duration{2501 * time.Millisecond}},
		{"in steps below the margin", []time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second}},
		{"there and back", []time.Duration{time.Hour, -time.Hour}},
		{"back and there", []time.Duration{-time.Hour, time.Hour}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newJumpy()
				holder, other := open(t, store, nil), open(t, store, nil)
				pass(time.Minute)
				h := claim(t, holder, request(1), driver.New).Hold
				told := watch(h)
				if got, _ := askFor(t, other, 3*time.Second); got != nil {
					t.Fatal("two holders before the clock jumped")
				}
				for _, d := range tt.jumps {
					store.jump(d)
					got, after := askFor(t, other, time.Second)
					if got != nil {
						t.Fatalf("taken over %v after a jump of %v while the holder was alive", after, d)
					}
				}
				if got, after := askFor(t, other, time.Minute); got != nil {
					t.Fatalf("taken over %v after the last jump while the holder was alive", after)
				}
				told.want(t, 0, time.Time{}, 0)
				apply(t, holder, seal(h), driver.OK)
				h.Drop()
				claim(t, other, request(1), driver.Duplicate)
			})
		})
	}
}

// A jump stops takeovers for one lease, not for ever.
func TestDeadHolderIsTakenOverAfterAJump(t *testing.T) {
	for name, tt := range map[string]struct{ jump, least, most time.Duration }{
		"no jump":               {0, 10 * time.Second, 10200 * time.Millisecond},
		"within the margin":     {2 * time.Second, 8 * time.Second, 8200 * time.Millisecond},
		"forward":               {time.Hour, 10 * time.Second, 10300 * time.Millisecond},
		"forward by one margin": {5 * time.Second, 10 * time.Second, 10300 * time.Millisecond},
		"back by a little":      {-5 * time.Second, 15 * time.Second, 15200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newJumpy()
				holder, other := open(t, store, nil), open(t, store, nil)
				pass(time.Minute)
				claim(t, holder, request(1), driver.New).Hold.Drop() // it died
				store.jump(tt.jump)
				h, after := askFor(t, other, time.Minute)
				if h == nil || after < tt.least || after > tt.most {
					t.Fatalf("taken over after %v, want between %v and %v", after, tt.least, tt.most)
				}
				if !h.Record().InDoubt {
					t.Errorf("record: %+v", h.Record())
				}
				h.Drop()
			})
		})
	}
}

// The store's clock goes back far: a living holder keeps its claim, a dead one's
// key is held until the clock has caught up, and both say so within a lease.
func TestStoreClockJumpsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newJumpy()
		holder, other := open(t, store, nil), open(t, store, nil)
		pass(time.Minute)
		h := claim(t, holder, request(1), driver.New).Hold
		told := watch(h)
		store.jump(-time.Hour)
		if got, after := askFor(t, other, 30*time.Second); got != nil {
			t.Fatalf("taken over after %v while the holder was alive", after)
		}
		told.want(t, 0, time.Time{}, 0)
		h.Drop() // it dies; its last renewal was on the new clock
		got, after := askFor(t, other, time.Minute)
		if got == nil || after > 10200*time.Millisecond {
			t.Fatalf("taken over after %v, want at most a lease", after)
		}
		got.Drop()
		// New claims are neither refused nor older than they are.
		claim(t, other, request(2), driver.New).Hold.Drop()
	})
}

// A holder whose lease is shorter than the claimer's survives smaller jumps.
func TestJumpMarginIsThatOfTheShortestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newJumpy()
		s := open(t, store, nil)
		pass(time.Minute)
		h := claim(t, s, request(1), driver.New).Hold // 10 s
		pass(3200 * time.Millisecond)                 // before its first renewal
		store.jump(8 * time.Second)
		long := request(1)
		long.Lease = time.Minute // its own margin would be 15 s
		if c := s.Claim(t.Context(), []*fence.Request{long})[0]; c.Answer != driver.Held {
			t.Errorf("answered %v while the holder was alive", c.Answer)
		}
		if !h.Live(time.Now()) {
			t.Error("the holder is not alive")
		}
		h.Drop()
	})
}

// Hosts whose clocks differ agree, since the store's alone decides.
func TestClockSkewBetweenHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newJumpy()
		host := func(skew time.Duration) *fence.Space {
			f := quiet(t, store, nil)
			fence.UseClock(f, func() time.Time { return time.Now().Add(skew) })
			s, err := f.Open(t.Context(), namespace(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
			return s
		}
		ahead, behind := host(5*time.Minute), host(-5*time.Minute)
		for _, pair := range [][2]*fence.Space{{ahead, behind}, {behind, ahead}} {
			h := claim(t, pair[0], request(1), driver.New).Hold
			if c := claim(t, pair[1], request(1), driver.Held); c.Left != 10*time.Second {
				t.Errorf("held for %v, want 10s", c.Left)
			}
			if got, after := askFor(t, pair[1], time.Minute); got != nil {
				t.Fatalf("taken over after %v while the holder was alive", after)
			}
			h.Drop()
			got, after := askFor(t, pair[1], time.Minute)
			if got == nil || after < 6*time.Second || after > 10200*time.Millisecond {
				t.Fatalf("taken over %v after the holder died, want a lease after its last renewal", after)
			}
			apply(t, pair[1], got.Release(), driver.OK)
			got.Drop()
			apply(t, pair[1], got.Release(), driver.Repeated)
			pass(driver.TombstoneLife)
			store.mu.Lock()
			clear(store.records)
			store.mu.Unlock()
		}
	})
}

package fence_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/memfence"
)

var errDown = errors.New("store is down")

// faulty wraps a store. Its hooks, if set, stand in for the calls; they may
// call the wrapped store. It counts calls by what they carry.
type faulty struct {
	driver.Store
	mu     sync.Mutex
	claim  func(context.Context, []driver.Claim) []driver.Claimed
	apply  func(context.Context, []driver.Transition) []driver.Applied
	marker func(driver.Marker) (driver.Marker, error)
	grade  func() (driver.Grade, error)
	sizes  map[driver.Op][]int // batch sizes of Apply, by the first transition's op
}

func newFaulty() *faulty {
	return &faulty{Store: memfence.NewStore(nil), sizes: make(map[driver.Op][]int)}
}

func (f *faulty) onClaim(hook func(context.Context, []driver.Claim) []driver.Claimed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claim = hook
}

func (f *faulty) onApply(hook func(context.Context, []driver.Transition) []driver.Applied) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply = hook
}

// calls returns the batch sizes of an op since the last call.
func (f *faulty) calls(op driver.Op) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	sizes := f.sizes[op]
	delete(f.sizes, op)
	return sizes
}

func (f *faulty) Claim(ctx context.Context, ns string, claims []driver.Claim) []driver.Claimed {
	f.mu.Lock()
	hook := f.claim
	f.mu.Unlock()
	if hook != nil {
		return hook(ctx, claims)
	}
	return f.Store.Claim(ctx, ns, claims)
}

func (f *faulty) Apply(ctx context.Context, ns string, transitions []driver.Transition) []driver.Applied {
	f.mu.Lock()
	f.sizes[transitions[0].Op] = append(f.sizes[transitions[0].Op], len(transitions))
	hook := f.apply
	f.mu.Unlock()
	if hook != nil {
		return hook(ctx, transitions)
	}
	return f.Store.Apply(ctx, ns, transitions)
}

func (f *faulty) Marker(ctx context.Context, ns string, update driver.Marker) (driver.Marker, error) {
	if f.marker != nil {
		return f.marker(update)
	}
	return f.Store.Marker(ctx, ns, update)
}

func (f *faulty) Grade(ctx context.Context) (driver.Grade, error) {
	if f.grade != nil {
		return f.grade()
	}
	return f.Store.Grade(ctx)
}

// down answers every transition with an error, at once.
func down(_ context.Context, transitions []driver.Transition) []driver.Applied {
	out := make([]driver.Applied, len(transitions))
	for i := range out {
		out[i].Err = errDown
	}
	return out
}

// hang answers every transition with an error when its context ends.
func hang(ctx context.Context, transitions []driver.Transition) []driver.Applied {
	<-ctx.Done()
	return down(ctx, transitions)
}

func failClaims(claims []driver.Claim) []driver.Claimed {
	out := make([]driver.Claimed, len(claims))
	for i := range out {
		out[i].Err = errDown
	}
	return out
}

const namespaceText = "%-:payments"

func namespace(t testing.TB) fence.Namespace {
	t.Helper()
	ns, err := fence.ParseNamespace(namespaceText)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// open opens a space on store that is closed at the end of the test.
func open(t testing.TB, store driver.Store, opts *fence.Options) *fence.Space {
	t.Helper()
	s, err := quiet(t, store, opts).Open(t.Context(), namespace(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func quiet(t testing.TB, store driver.Store, opts *fence.Options) *fence.Fence {
	t.Helper()
	var o fence.Options
	if opts != nil {
		o = *opts
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	f, err := fence.New(store, &o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func key(n int) fence.Key { return fence.JoinKey(fence.Text(fmt.Sprintf("order-%d", n))) }

// request asks for key n with a lease of 10 s.
func request(n int) *fence.Request {
	return &fence.Request{Key: key(n), Kind: driver.KindIdempotent, Attempt: 1, Lease: 10 * time.Second}
}

// claim asks once and fails the test unless the answer is want.
func claim(t testing.TB, s *fence.Space, r *fence.Request, want driver.Answer) fence.Claimed {
	t.Helper()
	c := s.Claim(context.Background(), []*fence.Request{r})[0]
	if c.Err != nil {
		t.Fatalf("claim %s: %v", r.Key, c.Err)
	}
	if c.Answer != want {
		t.Fatalf("claim %s was answered %v, want %v", r.Key, c.Answer, want)
	}
	if c.Answer.Granted() != (c.Hold != nil) {
		t.Fatalf("claim %s was answered %v with hold %v", r.Key, c.Answer, c.Hold)
	}
	return c
}

// apply sends one transition and fails the test unless its outcome is want.
func apply(t testing.TB, s *fence.Space, tr driver.Transition, want driver.Outcome) driver.Applied {
	t.Helper()
	a := s.Apply(context.Background(), []driver.Transition{tr})[0]
	if a.Err != nil {
		t.Fatalf("%v: %v", tr.Op, a.Err)
	}
	if a.Outcome != want {
		t.Fatalf("%v had the outcome %v, want %v (record: %+v)", tr.Op, a.Outcome, want, a.Record)
	}
	return a
}

func get(t testing.TB, s *fence.Space, n int) driver.Record {
	t.Helper()
	records, err := s.Get(context.Background(), []driver.Digest{key(n).Digest()})
	if err != nil {
		t.Fatal(err)
	}
	return records[0]
}

// pass lets time go by, in a bubble, and everybody act on it.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// travel is the time that a request or a reply takes.
func travel(d time.Duration) { <-time.After(d) }

func seal(h *fence.Hold) driver.Transition {
	return h.Seal(driver.KindIdempotent, "ch_1", []byte("paid"))
}

func TestClaimSealDuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), nil)
		h := claim(t, s, request(1), driver.New).Hold
		if h.Key() != key(1) || h.Token() == 0 || h.Token() != h.Record().Token || !h.Live(time.Now()) {
			t.Errorf("hold: key %v, token %d, record %+v, live %v", h.Key(), h.Token(), h.Record(), h.Live(time.Now()))
		}
		if want := time.Now().Add(7500 * time.Millisecond); !h.End().Equal(want) {
			t.Errorf("End = %v, want %v: the lease of 10 s without a quarter", h.End(), want)
		}
		if held := claim(t, s, request(1), driver.Held); held.Left != 10*time.Second {
			t.Errorf("left = %v, want 10s", held.Left)
		}
		apply(t, s, seal(h), driver.OK)
		h.Drop()
		c := claim(t, s, request(1), driver.Duplicate)
		if string(c.Record.Receipt) != "paid" || c.Record.EffectID != "ch_1" {
			t.Errorf("duplicate: %+v", c.Record)
		}
		pass(fence.DefaultRetention)
		claim(t, s, request(1), driver.New).Hold.Drop()
	})
}

func TestApplyRefusesAnEffectIDThatNoRecordHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), nil)
		a, b := claim(t, s, request(1), driver.New).Hold, claim(t, s, request(2), driver.New).Hold
		for _, id := range []string{"", "two\nlines", strings.Repeat("x", driver.MaxEffectID+1)} {
			out := s.Apply(t.Context(), []driver.Transition{a.Seal(driver.KindIdempotent, id, nil), b.Seal(driver.KindIdempotent, "ok", nil)})
			if out[0].Err == nil || out[1].Err != nil {
				t.Errorf("effect id %.10q: %v, and beside it %v", id, out[0].Err, out[1].Err)
			}
		}
		if state := get(t, s, 1).State; state != driver.Pending {
			t.Errorf("the record is %v, want pending", state)
		}
		a.Drop()
		b.Drop()
	})
}

package metamorphic

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/fencetest"
	"github.com/oncefence/oncefence/fence/memfence"
)

// TestStores plays each history on a store and on the reference.
func TestStores(t *testing.T) {
	for _, s := range subjects {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			store := s.open(t) // servers start one after the other
			t.Parallel()
			compare(t, t.Context(), store, s)
		})
	}
}

func compare(t rapid.TB, ctx context.Context, store driver.Store, s subject) {
	reference := memfence.NewStore(nil)
	rapid.Check(t, func(t *rapid.T) {
		history := histories(s.moves).Draw(t, "history")
		var plays [2][]fencetest.Line
		var errs [2]error
		var both sync.WaitGroup
		for i, on := range []driver.Store{reference, store} {
			both.Go(func() {
				plays[i], errs[i] = fencetest.Play(ctx, fencetest.Stage{
					Store: on, Namespace: "metamorphic:" + rand.Text(), Pass: pass, Lease: s.lease, Resend: 50,
				}, history)
			})
		}
		both.Wait()
		for i, err := range errs {
			if err != nil {
				t.Fatalf("%s: %v\n%v", []string{"reference", s.name}[i], err, history)
			}
		}
		if err := fencetest.Compare(plays[0], plays[1]); err != nil {
			t.Fatalf("the reference and %s differ at %v\n%v", s.name, err, history)
		}
	})
}

// pass waits for the end of short limits.
func pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// forgetful is a store that drops the doubt of a requeued record.
type forgetful struct{ driver.Store }

func (f forgetful) Apply(ctx context.Context, namespace string, transitions []driver.Transition) []driver.Applied {
	transitions = append([]driver.Transition(nil), transitions...)
	for i := range transitions {
		if transitions[i].Op == driver.HandOver {
			transitions[i].InDoubt = false
		}
	}
	return f.Store.Apply(ctx, namespace, transitions)
}

// setChecks changes the number of histories until the test's end.
func setChecks(t *testing.T, n string) {
	before := flag.Lookup("rapid.checks").Value.String()
	if err := flag.Set("rapid.checks", n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", before) })
}

// recorder is a test that keeps what is said of it.
type recorder struct {
	rapid.TB // nil: nothing else is called
	said     strings.Builder
	failed   bool
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return "TestStores" }

func (r *recorder) Logf(format string, args ...any)   { fmt.Fprintf(&r.said, format+"\n", args...) }
func (r *recorder) Log(args ...any)                   { fmt.Fprintln(&r.said, args...) }
func (r *recorder) Errorf(format string, args ...any) { r.Logf(format, args...); r.failed = true }
func (r *recorder) Error(args ...any)                 { r.Log(args...); r.failed = true }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }
func (r *recorder) Fatal(args ...any)                 { r.Error(args...) }
func (r *recorder) Fail()                             { r.failed = true }
func (r *recorder) FailNow()                          { r.failed = true }
func (r *recorder) Failed() bool                      { return r.failed }

// TestBrokenStoreIsFound: a store that is wrong is told from the reference by a
// few moves, and the seed is printed. In the bubble waiting costs no time, but
// of rapid's budget.
func TestBrokenStoreIsFound(t *testing.T) {
	setChecks(t, "2000")
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		compare(r, t.Context(), forgetful{memfence.NewStore(nil)}, subject{name: "a store that forgets doubt", lease: time.Microsecond, moves: 80})
		if !r.failed {
			t.Fatal("it was not found")
		}
		said := r.said.String()
		if !strings.Contains(said, "-rapid.seed=") || !strings.Contains(said, "a store that forgets doubt differ") {
			t.Errorf("the report does not name the store and the seed:\n%s", said)
		}
		moves := 0
		if at := strings.LastIndex(said, "differ at"); at >= 0 {
			moves = strings.Count(said[at:], " claim [") + strings.Count(said[at:], " apply [")
		}
		if moves < 2 || moves > 4 {
			t.Errorf("the history was made no smaller than %d moves:\n%s", moves, said)
		}
	})
}

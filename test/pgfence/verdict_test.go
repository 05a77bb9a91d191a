package pgfence_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// charger is an effect's function on pgx.
type charger = func(ctx context.Context, tx pgx.Tx, in effect.Input) (effect.Receipt, error)

// around writes the charge and then does what is said for one payload.
func (w *world) around(payload string, then func(ctx context.Context, tx pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error)) charger {
	return func(ctx context.Context, tx pgx.Tx, in effect.Input) (effect.Receipt, error) {
		r, err := w.charge(ctx, tx, in)
		if err == nil && string(in.Payload) == payload {
			return then(ctx, tx, in, r)
		}
		return r, err
	}
}

// ending is what becomes of one odd record among good ones.
type ending struct {
	then    func(ctx context.Context, tx pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error)
	reason  string // of the dead letter; "" for none
	charged int
	calls   int // 0: not looked at
	state   fencedriver.State
	doubt   bool
}

func endings(w *world) map[string]ending {
	return map[string]ending{
		"temporary for ever": {
			then: func(context.Context, pgx.Tx, effect.Input, effect.Receipt) (effect.Receipt, error) {
				return effect.Receipt{}, effect.Temporary(errRefused)
			}, reason: "retries spent", calls: 3, state: fencedriver.Dead,
		},
		"temporary once": {
			then: func(_ context.Context, _ pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error) {
				if in.Attempt == 1 {
					return effect.Receipt{}, effect.Temporary(errRefused)
				}
				return r, nil
			}, charged: 1, calls: 2, state: fencedriver.Done,
		},
		"permanent": {
			then: func(context.Context, pgx.Tx, effect.Input, effect.Receipt) (effect.Receipt, error) {
				return effect.Receipt{}, effect.Permanent(errRefused)
			}, reason: "permanent", calls: 1, state: fencedriver.Dead,
		},
		"a plain error is not applied": {
			then: func(_ context.Context, _ pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error) {
				if in.Attempt < 3 {
					return effect.Receipt{}, errRefused
				}
				return r, nil
			}, charged: 1, calls: 3, state: fencedriver.Done,
		},
		"panic": {
			then: func(_ context.Context, _ pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error) {
				if in.Attempt == 1 {
					panic("out of luck")
				}
				return r, nil
			}, charged: 1, calls: 2, state: fencedriver.Done,
		},
		"goexit": {
			then: func(_ context.Context, _ pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error) {
				if in.Attempt == 1 {
					runtime.Goexit()
				}
				return r, nil
			}, charged: 1, state: fencedriver.Done,
		},
		"a statement failed and nobody said so": {
			then: func(ctx context.Context, tx pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error) {
				if in.Attempt == 1 {
					_, _ = tx.Exec(ctx, "SELECT 1/0")
				}
				return r, nil
			}, charged: 1, calls: 2, state: fencedriver.Done,
		},
		"a failed statement in a savepoint of the effect's own": {
			then: func(ctx context.Context, tx pgx.Tx, _ effect.Input, r effect.Receipt) (effect.Receipt, error) {
				inner, err := tx.Begin(ctx)
				if err != nil {
					return r, err
				}
				_, _ = inner.Exec(ctx, "SELECT 1/0")
				return r, inner.Rollback(ctx)
			}, charged: 1, calls: 1, state: fencedriver.Done,
		},
		"commit and rollback are not the effect's": {
			then: func(ctx context.Context, tx pgx.Tx, _ effect.Input, r effect.Receipt) (effect.Receipt, error) {
				if tx.Commit(ctx) == nil || tx.Rollback(ctx) == nil {
					return r, effect.Permanent(errors.New("the transaction could be ended"))
				}
				return r, nil
			}, charged: 1, calls: 1, state: fencedriver.Done,
		},
		"rows left open": {
			then: func(ctx context.Context, tx pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error) {
				if in.Attempt == 1 {
					_, err := tx.Query(ctx, "SELECT generate_series(1, 100000)") //nolint:rowserrcheck,sqlclosecheck // that is the point
					return r, err
				}
				return r, nil
			}, charged: 1, state: fencedriver.Done,
		},
		"its connection is gone": {
			then: func(ctx context.Context, tx pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error) {
				if in.Attempt == 1 {
					_ = tx.Conn().Close(ctx)
				}
				return r, nil
			}, charged: 1, state: fencedriver.Done,
		},
		"the effect commits by itself": {
			then: func(ctx context.Context, tx pgx.Tx, _ effect.Input, r effect.Receipt) (effect.Receipt, error) {
				_, err := tx.Conn().Exec(ctx, "COMMIT")
				return r, err
			}, reason: "in_doubt", charged: 1, calls: 1, state: fencedriver.Dead, doubt: true,
		},
		"the effect commits by itself and begins anew": {
			then: func(ctx context.Context, tx pgx.Tx, _ effect.Input, r effect.Receipt) (effect.Receipt, error) {
				_, err := tx.Conn().Exec(ctx, "COMMIT; BEGIN")
				return r, err
			}, reason: "in_doubt", charged: 1, calls: 1, state: fencedriver.Dead, doubt: true,
		},
		"the commit is refused": {
			then: func(ctx context.Context, tx pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error) {
				if in.Attempt < 3 {
					_, err := tx.Exec(ctx, "INSERT INTO "+w.table("late")+" VALUES (1)")
					return r, err
				}
				return r, nil
			}, charged: 1, state: fencedriver.Done,
		},
	}
}

// One odd record ends as it must, the good ones beside it are charged once.
func TestVerdicts(t *testing.T) {
	for name := range endings(nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			end := endings(w)[name]
			w.late()
			var calls atomic.Int32
			charge := w.around("odd", func(ctx context.Context, tx pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error) {
				calls.Add(1)
				return end.then(ctx, tx, in, r)
			})
			w.produce("a", "a")
			w.produce("odd", "odd")
			for _, good := range []string{"b", "c", "d"} {
				w.produce(good, good)
			}
			opts := w.options()
			opts.Concurrency = 1
			stop := w.start(effect.Transactional(charge, nil), opts)
			w.settled()
			w.ended("odd", end)
			stop()
			if n := int(calls.Load()); end.calls != 0 && n != end.calls {
				t.Errorf("the effect was called %d times, want %d", n, end.calls)
			}
			if end.doubt {
				return // its neighbours in the transaction may be in doubt too
			}
			charges := w.charges()
			for _, good := range []string{"a", "b", "c", "d"} {
				if charges[good] != 1 {
					t.Errorf("%s was charged %d times", good, charges[good])
				}
			}
		})
	}
}

// late makes a table whose constraint is checked at the commit.
func (w *world) late() {
	exec(w.t, w.pool, "CREATE TABLE "+w.table("once")+" (n int PRIMARY KEY)")
	exec(w.t, w.pool, "CREATE TABLE "+w.table("late")+" (n int REFERENCES "+w.table("once")+" DEFERRABLE INITIALLY DEFERRED)")
}

// ended waits for the end of a record and wants it to be this one.
func (w *world) ended(id string, end ending) {
	w.t.Helper()
	until(w.t, "the record has ended", func() bool {
		r := w.get(id)
		return r.State == fencedriver.Done || r.State == fencedriver.Dead
	})
	r := w.get(id)
	if r.State != end.state || r.InDoubt != end.doubt {
		w.t.Errorf("the record is %s, in doubt %v, want %s, %v (%s)", r.State, r.InDoubt, end.state, end.doubt, r.Reason)
	}
	if got := w.charges()[id]; got != end.charged {
		w.t.Errorf("charged %d times, want %d", got, end.charged)
	}
	letters := w.deadLetters()
	if end.reason == "" {
		if len(letters) != 0 {
			w.t.Errorf("%d dead letters: %s", len(letters), header(letters[0], "oncefence-error"))
		}
		return
	}
	found := false
	for _, letter := range letters {
		found = found || string(letter.Value) == id && strings.HasPrefix(header(letter, "oncefence-reason"), end.reason)
	}
	if !found {
		w.t.Errorf("no dead letter with the reason %s among %d", end.reason, len(letters))
	}
}

// Retries in place keep the order of a key: what is behind waits.
func TestRetriesInPlace(t *testing.T) {
	w := newWorld(t, 1)
	charge := w.around("odd", func(_ context.Context, _ pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error) {
		if in.Attempt < 3 {
			return effect.Receipt{}, effect.Temporary(errRefused)
		}
		return r, nil
	})
	for _, id := range []string{"a", "odd", "b"} {
		w.produceKey("customer", id)
	}
	opts := w.options()
	opts.InPlace = true
	defer w.start(effect.Transactional(charge, nil), opts)()
	w.settled()
	if got := w.order(); got != "a odd b" {
		t.Errorf("charged in the order %q", got)
	}
	if r := w.get("odd"); r.Attempt != 3 {
		t.Errorf("sealed at attempt %d, want 3", r.Attempt)
	}
	if n := w.seen.of(consumer.DecisionRequeued); n != 0 {
		t.Errorf("%d copies were produced", n)
	}
}

func TestMaxRunTime(t *testing.T) {
	w := newWorld(t, 1)
	charge := w.around("odd", func(ctx context.Context, tx pgx.Tx, in effect.Input, r effect.Receipt) (effect.Receipt, error) {
		if in.Attempt == 1 {
			_, err := tx.Exec(ctx, "SELECT pg_sleep(60)")
			return r, err
		}
		return r, nil
	})
	for _, id := range []string{"a", "odd", "b"} {
		w.produce(id, id)
	}
	opts := w.options()
	opts.Concurrency = 1
	defer w.start(effect.Transactional(charge, &effect.TransactionalOptions{MaxRunTime: 300 * time.Millisecond}), opts)()
	w.settled()
	w.ended("odd", ending{charged: 1, state: fencedriver.Done})
	if c := w.charges(); c["a"] != 1 || c["b"] != 1 {
		t.Errorf("charges %v", c)
	}
	if r := w.get("odd"); r.Attempt != 2 {
		t.Errorf("sealed at attempt %d, want 2", r.Attempt)
	}
}

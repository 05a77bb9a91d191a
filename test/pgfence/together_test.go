package pgfence_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/memfence"
	"github.com/oncefence/oncefence/fence/pgfence"
)

// While a transaction runs the effect, whoever else asks for the key is told that
// it is held, also after what would be a lease, and then that it is done.
func TestOneOfTwoConsumersRunsTheEffect(t *testing.T) {
	w := newWorld(t, 2)
	began, goOn := make(chan struct{}), make(chan struct{})
	charge := w.around("order", func(_ context.Context, _ pgx.Tx, _ effect.Input, r effect.Receipt) (effect.Receipt, error) {
		close(began) // a second call panics
		<-goOn
		return r, nil
	})
	for p := range int32(2) {
		w.produceTo(p, "order", "order")
	}
	opts := w.options()
	opts.Lease = 100 * time.Millisecond
	stop1, stop2 := w.start(effect.Transactional(charge, nil), opts), w.start(effect.Transactional(charge, nil), opts)
	defer stop1()
	defer stop2()
	<-began
	until(t, "the other one was told that the key is held", func() bool { return w.seen.of(consumer.DecisionHeld) > 0 })
	time.AfterFunc(300*time.Millisecond, func() { close(goOn) })
	w.settled()
	if c := w.charges(); c["order"] != 1 {
		t.Errorf("charged %d times", c["order"])
	}
	if n := w.seen.of(consumer.DecisionDuplicate); n != 1 {
		t.Errorf("%d duplicates, want 1: %v", n, w.seen.count)
	}
}

// A key that a crashed consumer of another kind left in doubt is parked, and not
// charged.
func TestDoubtOfAnotherKindIsParked(t *testing.T) {
	w := newWorld(t, 1)
	space := w.open(w.fence)
	claimed := space.Claim(t.Context(), []*fence.Request{{
		Key: keyOf("order"), Kind: fencedriver.KindIdempotent, Attempt: 1, Lease: fence.MinLease, Fingerprint: fence.FingerprintOf([]byte("order")),
	}})
	if claimed[0].Err != nil || claimed[0].Answer != fencedriver.New {
		t.Fatalf("%v, %v", claimed[0].Answer, claimed[0].Err)
	}
	claimed[0].Hold.Drop() // the process is gone
	w.produce("order", "order")
	w.produce("other", "other")
	defer w.start(effect.Transactional(w.charge, nil), w.options())()
	w.settled()
	w.ended("order", ending{state: fencedriver.Dead, doubt: true, reason: "doubt left by a consumer of kind idempotent"})
	if c := w.charges(); c["other"] != 1 {
		t.Errorf("charges: %v", c)
	}
	if n := w.seen.of(consumer.DecisionParked); n != 1 {
		t.Errorf("%d parked", n)
	}
}

// A claim of its own kind that was left without a verdict is nothing to doubt:
// its effect was rolled back with it.
func TestAClaimOfTheSameKindIsNew(t *testing.T) {
	w := newWorld(t, 1)
	claimed := w.open(w.fence).Claim(t.Context(), []*fence.Request{{Key: keyOf("order"), Kind: fencedriver.KindTransactional, Attempt: 1, Lease: fence.MinLease}})
	if claimed[0].Err != nil {
		t.Fatal(claimed[0].Err)
	}
	claimed[0].Hold.Drop()
	w.produce("order", "order")
	defer w.start(effect.Transactional(w.charge, nil), w.options())()
	w.settled()
	w.ended("order", ending{state: fencedriver.Done, charged: 1})
}

func TestDuplicatesAreAnsweredWithTheReceipt(t *testing.T) {
	w := newWorld(t, 1)
	w.produce("order", "order")
	stop := w.start(effect.Transactional(w.charge, nil), w.options())
	w.settled()
	stop()
	for range 2 {
		claimed := w.open(w.fence).Claim(t.Context(), []*fence.Request{{Key: keyOf("order"), Kind: fencedriver.KindTransactional, Attempt: 1}})
		if r := claimed[0].Record; claimed[0].Answer != fencedriver.Duplicate || r.EffectID != "charge of order" || string(r.Receipt) != "paid order" {
			t.Errorf("%v with effect id %q and receipt %q", claimed[0].Answer, r.EffectID, r.Receipt)
		}
	}
	w.produce("order", "another payload")
	defer w.start(effect.Transactional(w.charge, nil), w.options())()
	until(t, "the conflict is a dead letter", func() bool { return w.seen.of(consumer.DecisionConflict) == 1 })
	if c := w.charges(); len(c) != 1 || c["order"] != 1 {
		t.Errorf("charges: %v", c)
	}
}

// What ends the consumer in the middle of an effect rolls it back; the next one
// charges.
func TestADrainThatRunsOutRollsBack(t *testing.T) {
	w := newWorld(t, 1)
	began := make(chan struct{})
	var once sync.Once
	slow := w.around("order", func(ctx context.Context, _ pgx.Tx, _ effect.Input, r effect.Receipt) (effect.Receipt, error) {
		once.Do(func() { close(began) })
		<-ctx.Done()
		return r, nil // it says that it was applied
	})
	w.produce("order", "order")
	opts := w.options()
	opts.DrainTimeout = 100 * time.Millisecond
	c, err := consumer.New(w.broker.Source(group, []string{topic}, nil), w.fence, effect.Transactional(slow, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	<-began
	cancel()
	_ = <-ended //nolint:staticcheck // with or without an error: its time was over
	if n := len(w.charges()); n != 0 {
		t.Errorf("%d charges after a transaction that was cut off", n)
	}
	defer w.start(effect.Transactional(w.charge, nil), w.options())()
	w.settled()
	w.ended("order", ending{state: fencedriver.Done, charged: 1})
}

func TestNewRefusesByName(t *testing.T) {
	w := newWorld(t, 1)
	memory, err := memfence.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	overSQL, err := pgfence.NewSQL(connectSQL(t, w.pool.Config().ConnString()), &pgfence.Options{Schema: w.schema, Fence: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		fence *fence.Fence
		e     effect.Effect
		why   string
	}{
		"a store without transactions": {memory, effect.Transactional(w.charge, nil), "store has none to share"},
		"another transaction's type":   {overSQL, effect.Transactional(w.charge, nil), "wants a transaction of type pgx.Tx, the fence's store gives *sql.Tx"},
		"no function":                  {w.fence, effect.Transactional[pgx.Tx](nil, nil), "the function is nil"},
		"any transaction":              {w.fence, effect.Transactional(func(context.Context, any, effect.Input) (effect.Receipt, error) { return effect.Receipt{}, nil }, nil), "type is any"},
		"negative options":             {w.fence, effect.Transactional(w.charge, &effect.TransactionalOptions{MaxBatch: -1}), "MaxBatch is -1"},
		"no fence":                     {nil, effect.Transactional(w.charge, nil), "fence is nil"},
	} {
		_, err := consumer.New(w.broker.Source(group, []string{topic}, nil), c.fence, c.e, w.options())
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
	if _, err := pgfence.New(nil, nil); err == nil {
		t.Error("a nil pool passed")
	}
}

// open opens the consumers' namespace.
func (w *world) open(f *fence.Fence) *fence.Space {
	w.t.Helper()
	ns, err := fence.ParseNamespace(namespaceOf())
	if err != nil {
		w.t.Fatal(err)
	}
	space, err := f.Open(w.t.Context(), ns)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := space.Close(context.WithoutCancel(w.t.Context())); err != nil && !errors.Is(err, fence.ErrClosed) {
			w.t.Error(err)
		}
	})
	return space
}

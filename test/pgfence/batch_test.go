package pgfence_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// sizes notes how many records the effect was called with.
type sizes struct {
	mu  sync.Mutex
	all []int
}

func (s *sizes) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, n)
}

// One record that the database refuses fails alone, also when the statement that
// writes all of them fails as a whole.
func TestOneBadRecordInABatch(t *testing.T) {
	w := newWorld(t, 1)
	var seen sizes
	all := orders(64)
	for i, order := range all {
		if i == 40 {
			w.produce("unlucky", "unlucky")
		}
		w.produce(order, order)
	}
	charge := func(ctx context.Context, tx pgx.Tx, in []effect.Input) []effect.Outcome {
		seen.add(len(in))
		return w.chargeAll(ctx, tx, in)
	}
	opts := w.options()
	opts.Concurrency = 1
	defer w.start(effect.TransactionalBatch(charge, nil), opts)()
	w.settled()
	w.ended("unlucky", ending{state: fencedriver.Dead, reason: "retries spent"})
	charges := w.charges()
	for _, order := range all {
		if charges[order] != 1 {
			t.Errorf("%s was charged %d times", order, charges[order])
		}
	}
	// Halving 65 records until one is left takes 2 x 7 calls at most, beside those
	// of the first transactions and of the copies.
	if len(seen.all) > 30 {
		t.Errorf("the effect was called %d times: %v", len(seen.all), seen.all)
	}
}

// Records that the effect itself blames do not run again with the others, which
// are written together.
func TestTheEffectBlamesRecordsOfABatch(t *testing.T) {
	w := newWorld(t, 1)
	var seen sizes
	for i := range 30 {
		w.produce(fmt.Sprint("order ", i), fmt.Sprint("order ", i))
	}
	w.produce("never", "never")
	w.produce("later", "later")
	charge := func(ctx context.Context, tx pgx.Tx, in []effect.Input) []effect.Outcome {
		seen.add(len(in))
		out := w.chargeAll(ctx, tx, in)
		for i := range in {
			switch {
			case string(in[i].Payload) == "never":
				out[i].Err = effect.Permanent(errRefused)
			case string(in[i].Payload) == "later" && in[i].Attempt == 1:
				out[i].Err = effect.Temporary(errRefused)
			}
		}
		return out
	}
	opts := w.options()
	opts.Concurrency = 1
	defer w.start(effect.TransactionalBatch(charge, &effect.TransactionalOptions{MaxBatch: 32}), opts)()
	w.settled()
	w.ended("never", ending{state: fencedriver.Dead, reason: "permanent"})
	if r := w.get("later"); r.State != fencedriver.Done || r.Attempt != 2 {
		t.Errorf("the one for later is %s at attempt %d", r.State, r.Attempt)
	}
	charges := w.charges()
	if len(charges) != 31 {
		t.Errorf("%d orders were charged, want 31", len(charges))
	}
	for order, n := range charges {
		if n != 1 {
			t.Errorf("%s was charged %d times", order, n)
		}
	}
	if len(seen.all) > 6 {
		t.Errorf("the effect was called %d times: %v", len(seen.all), seen.all)
	}
}

// A batch form that answers another number of outcomes, panics or reorders its
// slice has applied nothing.
func TestABatchFormThatMisbehaves(t *testing.T) {
	w := newWorld(t, 1)
	for _, order := range orders(8) {
		w.produce(order, order)
	}
	calls := 0
	charge := func(ctx context.Context, tx pgx.Tx, in []effect.Input) []effect.Outcome {
		out := w.chargeAll(ctx, tx, in)
		calls++ // one transaction at a time
		switch {
		case calls == 1:
			return out[1:]
		case calls == 2:
			panic("out of luck")
		case calls == 3 && len(in) > 1:
			in[0], in[1] = in[1], in[0]
		}
		return out
	}
	opts := w.options()
	opts.Concurrency = 1
	defer w.start(effect.TransactionalBatch(charge, nil), opts)()
	w.settled()
	for _, order := range orders(8) {
		if c := w.charges(); c[order] != 1 {
			t.Errorf("%s was charged %d times", order, c[order])
		}
	}
	if n := w.seen.of(consumer.DecisionDone); n != 8 {
		t.Errorf("%d done", n)
	}
}

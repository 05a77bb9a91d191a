package consumer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
)

func TestAtLeastOnceNeedsNoFence(t *testing.T) {
	bubble(t, 2, func(t *testing.T, b *bench) {
		b.fence = nil
		for i := range 50 {
			b.produce(fmt.Sprint("id-", i%25), fmt.Sprint("k", i%5), fmt.Sprint("order ", i%25))
		}
		b.runFor(5*time.Second, effect.AtLeastOnce(b.ledger.bookEffect, nil), b.options())
		if b.ledger.total() != 50 || b.committed(0)+b.committed(1) != 50 {
			t.Errorf("%d runs, committed %d and %d: every delivery runs", b.ledger.total(), b.committed(0), b.committed(1))
		}
	})
}

func TestAtLeastOnceRetriesThroughCopies(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.fence = nil
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{effect.Temporary(errPlain), errPlain, nil}}
		b.runFor(20*time.Second, effect.AtLeastOnce(s.run, nil), b.options())
		if s.count() != 3 || s.runs[2].Attempt != 3 || s.runs[2].Step != 2 || b.ledger.count("order a") != 1 {
			t.Errorf("%d runs: %+v", s.count(), s.runs)
		}
		if b.log.count("requeued") != 2 || len(b.broker.Records(topic+"."+group+".retry.5s")) != 1 || b.committed(0) != 1 {
			t.Errorf("decisions %v, committed %d", b.log, b.committed(0))
		}
	})
}

func TestAtLeastOnceDeadLetters(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.fence = nil
		b.produce("spent", "k", "order a")
		b.produce("permanent", "k", "order b")
		e := effect.AtLeastOnce(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
			if string(in.Payload) == "order b" {
				return effect.Receipt{}, effect.Permanent(errPlain)
			}
			return effect.Receipt{}, errPlain
		}, nil)
		opts := b.options()
		opts.Schedule = exact(time.Second)
		b.runFor(20*time.Second, e, opts)
		dead := b.deadLetters()
		if len(dead) != 2 || b.committed(0) != 2 {
			t.Fatalf("%d dead letters, committed %d", len(dead), b.committed(0))
		}
		for _, d := range dead {
			want := map[string]string{"order a": "retries spent", "order b": "permanent"}[string(d.Value)]
			if header(d, "oncefence-reason") != want {
				t.Errorf("%s: reason %q, want %q", d.Value, header(d, "oncefence-reason"), want)
			}
		}
	})
}

func TestAtLeastOnceInPlaceKeepsTheLane(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.fence = nil
		b.produce("a", "k", "order a")
		b.produce("b", "k", "order b")
		s := &script{b: b, answers: []error{effect.Temporary(errPlain), nil}}
		opts := b.options()
		opts.InPlace = true
		b.runFor(20*time.Second, effect.AtLeastOnce(s.run, nil), opts)
		if fmt.Sprint(b.ledger.order) != "[order a order b]" || s.count() != 3 {
			t.Errorf("order %v in %d runs", b.ledger.order, s.count())
		}
	})
}

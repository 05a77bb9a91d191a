package consumer_test

import (
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// A group is reset to the beginning after its receipts have expired: absence is
// no evidence for what it was past, and still is for what comes new.
func TestRecordsOutsideTheWindow(t *testing.T) {
	const retention = 14 * 24 * time.Hour
	for _, policy := range []consumer.OutsideWindow{consumer.OutsideWindowPark, consumer.OutsideWindowRun} {
		bubble(t, 1, func(t *testing.T, b *bench) {
			b.produce("a", "", "order a")
			b.produce("b", "", "order b")
			b.runFor(20*time.Second, idempotent(b.ledger.bookEffect), b.options())
			b.wait(retention + time.Hour)
			b.produce("late", "", "order late") // old receipts are gone, this one is new
			b.broker.SetCommitted(group, driver.Offset{TopicPartition: partition0, Offset: 0, LeaderEpoch: -1})
			s := &script{b: b, answers: []error{nil}}
			opts := b.options()
			opts.OutsideWindow = policy
			b.runFor(20*time.Second, effect.Idempotent(s.run, forever()), opts)
			wantRuns := map[consumer.OutsideWindow]int{consumer.OutsideWindowPark: 1, consumer.OutsideWindowRun: 3}[policy]
			if s.count() != wantRuns || b.ledger.count("order late") != 1 || b.committed(0) != 3 {
				t.Errorf("policy %d: %d runs, committed %d", policy, s.count(), b.committed(0))
			}
			if policy == consumer.OutsideWindowPark {
				dead := b.deadLetters()
				if r := b.record("a"); len(dead) != 2 || header(dead[0], "oncefence-reason") != "outside_window" || r.State != fencedriver.Dead || !r.InDoubt {
					t.Errorf("%d dead letters, record %s, in doubt %v", len(dead), r.State, r.InDoubt)
				}
			}
		})
	}
}

// A group that is reset while its receipts are kept repeats nothing.
func TestAResetInsideTheWindowRepeatsNothing(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		b.produce("b", "", "order b")
		b.runFor(20*time.Second, idempotent(b.ledger.bookEffect), b.options())
		b.wait(13 * 24 * time.Hour)
		b.broker.Forget(group)
		b.runFor(20*time.Second, idempotent(b.ledger.bookEffect), b.options())
		if b.ledger.total() != 2 || b.log.count("duplicate") != 2 || b.committed(0) != 2 {
			t.Errorf("%d booked, decisions %v, committed %d", b.ledger.total(), b.log, b.committed(0))
		}
	})
}

// A redelivery far behind, without a reset, is not outside: the group was never
// past it.
func TestAnOldBacklogIsNotOutsideTheWindow(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for _, id := range []string{"a", "b"} {
			b.produce(id, "", "order "+id)
		}
		b.wait(30 * 24 * time.Hour)
		b.runFor(20*time.Second, idempotent(b.ledger.bookEffect), b.options())
		if b.ledger.total() != 2 || len(b.deadLetters()) != 0 {
			t.Errorf("%d booked, %d dead letters", b.ledger.total(), len(b.deadLetters()))
		}
	})
}

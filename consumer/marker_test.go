package consumer_test

import (
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
)

// Behind the last record of a partition an aborted transaction may follow that
// brings no delivery. The position goes past it: left before it, it would be
// removed by retention and stop the partition at the next start.
func TestCommitsPastWhatIsNotDelivered(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		tp := driver.TopicPartition{Topic: topic, Partition: 0}
		skip := func(n int64) {
			t.Helper()
			if err := b.broker.Skip(tp, n); err != nil {
				t.Fatal(err)
			}
		}
		_, stop := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		skip(2) // before anything was delivered
		b.wait(3 * time.Second)
		if at := b.committed(0); at != 2 {
			t.Errorf("committed %d after two aborted records, want 2", at)
		}
		b.produce("a", "k", "order a")
		b.wait(3 * time.Second)
		if at := b.committed(0); at != 3 {
			t.Errorf("committed %d after a record, want 3", at)
		}
		skip(4) // long after the record was settled
		b.wait(3 * time.Second)
		if at := b.committed(0); at != 7 {
			t.Errorf("committed %d after four more aborted records, want 7", at)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if b.ledger.count("order a") != 1 {
			t.Errorf("booked %d times", b.ledger.count("order a"))
		}
	})
}

// A record that is still running holds the position back, whatever was passed
// behind it.
func TestPassedOffsetsWaitForWhatRuns(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		run := &script{b: b, answers: []error{effect.Temporary(errPlain), nil}}
		opts := b.options()
		opts.InPlace, opts.Schedule = true, exact(10*time.Second)
		_, stop := b.start(effect.Idempotent(run.run, forever()), opts)
		b.wait(time.Second)
		if err := b.broker.Skip(driver.TopicPartition{Topic: topic, Partition: 0}, 3); err != nil {
			t.Fatal(err)
		}
		b.wait(3 * time.Second)
		if at := b.committed(0); at > 0 {
			t.Errorf("committed %d while the first record waits for its retry", at)
		}
		b.wait(10 * time.Second)
		if at := b.committed(0); at != 4 {
			t.Errorf("committed %d in the end, want 4", at)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

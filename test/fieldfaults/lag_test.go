package fieldfaults_test

import (
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
)

// BL-090: a marker behind the last record, which nobody delivers, is no lag.
func TestAMarkerIsNoLag(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		l := &ledger{}
		b.put(0, "a")
		if err := b.broker.Skip(of(0), 1); err != nil {
			t.Fatal(err)
		}
		c, stop := b.start(b.broker.Source(group, []string{topic}, nil), effect.Idempotent(l.book, forever()), b.options())
		b.wait(5 * time.Minute)
		p, _ := b.told.partition(t, 0)
		if err := c.Healthy(); p.Lag != 0 || err != nil {
			t.Errorf("lag %d, healthy: %v", p.Lag, err)
		}
		stop()
	})
}

// BL-091: a commit below the start of the log is not a lag of all that is gone;
// what was jumped over is counted as such.
func TestWhatRetentionRemovedIsNoLag(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		l := &ledger{}
		b.put(0, ids("old-", 500)...)
		b.broker.SetCommitted(group, driver.Offset{TopicPartition: of(0), Offset: 100, LeaderEpoch: -1})
		if err := b.broker.Trim(of(0), 500); err != nil {
			t.Fatal(err)
		}
		_, stop := b.start(b.broker.Source(group, []string{topic}, &memsource.SourceOptions{OnReset: memsource.Earliest}), effect.Idempotent(l.book, forever()), b.options())
		b.wait(5 * time.Second)
		if p, skipped := b.told.partition(t, 0); p.Lag != 0 || skipped != 400 {
			t.Errorf("lag %d, skipped %d, want 0 and 400", p.Lag, skipped)
		}
		b.put(0, "new")
		b.wait(5 * time.Second)
		stop()
		if one, more := l.once(); one != 1 || more != 0 {
			t.Errorf("%d booked once, %d more often", one, more)
		}
	})
}

// BL-110: a log that was cut off and written anew holds other records at the
// offsets that were read before. They run, since the fence goes by their ids.
func TestWhatIsWrittenOverATruncatedLogRuns(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		l := &ledger{}
		b.put(0, ids("old-", 20)...)
		_, stop := b.start(b.broker.Source(group, []string{topic}, &memsource.SourceOptions{OnReset: memsource.Earliest}), effect.Idempotent(l.book, forever()), b.options())
		b.wait(5 * time.Second)
		if err := b.broker.Truncate(of(0), 15); err != nil {
			t.Fatal(err)
		}
		b.put(0, ids("new-", 10)...)
		b.wait(time.Minute)
		stop()
		at, _ := b.broker.Committed(group, of(0))
		if one, more := l.once(); one != 30 || more != 0 || at.Offset != 25 {
			t.Errorf("%d booked once, %d more often, committed %d, want 30, 0, 25", one, more, at.Offset)
		}
	})
}

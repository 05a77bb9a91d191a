package consumer_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
)

// to writes n records to a partition, with ids that begin with prefix.
func (b *bench) to(partition int32, prefix string, n, size int) {
	b.t.Helper()
	records := make([]driver.Record, n)
	for i := range records {
		records[i] = driver.Record{
			Value:   []byte(fmt.Sprint(prefix, i, strings.Repeat(".", size))),
			Headers: []driver.Header{{Key: "idempotency-key", Value: fmt.Append(nil, prefix, i)}},
		}
	}
	if _, err := b.broker.ProduceTo(driver.TopicPartition{Topic: topic, Partition: partition}, records...); err != nil {
		b.t.Fatal(err)
	}
}

// blocking holds the records with a prefix until the gate opens.
func blocking(b *bench, prefix string, gate chan struct{}) effect.Func {
	return func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		if strings.HasPrefix(string(in.Payload), prefix) {
			select {
			case <-gate:
			case <-ctx.Done():
				return effect.Receipt{}, ctx.Err()
			}
		}
		return b.ledger.bookEffect(ctx, in)
	}
}

// One record that does not end stops its partition at the window, counted from
// that record on, and no other partition.
func TestOneRecordThatDoesNotEndStopsItsPartitionAtTheWindow(t *testing.T) {
	bubble(t, 2, func(t *testing.T, b *bench) {
		b.to(0, "stuck-", 1, 0)
		b.to(0, "behind-", 3000, 0)
		b.to(1, "other-", 3000, 0)
		gate := make(chan struct{})
		opts := b.options()
		opts.PartitionRecords = 1000
		_, stop := b.start(idempotent(blocking(b, "stuck", gate)), opts)
		b.wait(30 * time.Second)
		behind, other := b.ledger.prefix("behind"), b.ledger.prefix("other")
		if behind < 900 || behind > 1000+2*512 {
			t.Errorf("%d records ran behind the stuck one with a window of 1,000", behind)
		}
		if other != 3000 || b.committed(1) != 3000 || b.committed(0) != 0 {
			t.Errorf("%d of the other partition ran, committed %d and %d", other, b.committed(1), b.committed(0))
		}
		for _, p := range b.log.gauge().Partitions {
			if p.Topic == topic && p.Paused != (p.Partition == 0) {
				t.Errorf("partition %d: paused %v", p.Partition, p.Paused)
			}
		}
		close(gate)
		b.wait(10 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if b.ledger.total() != 6001 || b.committed(0) != 3001 {
			t.Errorf("%d booked, committed %d after the record had ended", b.ledger.total(), b.committed(0))
		}
	})
}

func (l *ledger) prefix(p string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for what, times := range l.booked {
		if strings.HasPrefix(what, p) {
			n += times
		}
	}
	return n
}

func TestAPartitionIsBoundedByBytes(t *testing.T) {
	bubble(t, 2, func(t *testing.T, b *bench) {
		b.to(0, "stuck-", 400, 10_000)
		b.to(1, "other-", 400, 10_000)
		gate := make(chan struct{})
		opts := b.options()
		opts.PartitionBytes, opts.BatchSize, opts.Concurrency = 1<<20, 10, 1000
		_, stop := b.start(idempotent(blocking(b, "stuck", gate)), opts)
		b.wait(10 * time.Second)
		for _, p := range b.log.gauge().Partitions {
			if p.Topic == topic && p.Partition == 0 && (p.InFlight < 90 || p.InFlight > 130 || !p.Paused) {
				t.Errorf("%d records of 10 kB in flight with 1 MiB, paused %v", p.InFlight, p.Paused)
			}
		}
		if b.ledger.prefix("other") != 400 {
			t.Errorf("%d of the other partition ran", b.ledger.prefix("other"))
		}
		close(gate)
		b.wait(10 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if b.ledger.total() != 800 {
			t.Errorf("%d booked", b.ledger.total())
		}
	})
}

func TestAllPartitionsTogetherAreBounded(t *testing.T) {
	for _, by := range []string{"records", "bytes"} {
		bubble(t, 8, func(t *testing.T, b *bench) {
			for p := range int32(8) {
				b.to(p, fmt.Sprint("stuck-", p, "-"), 200, 1000)
			}
			gate := make(chan struct{})
			var polls atomic.Int64
			opts := b.options()
			opts.BatchSize, opts.Concurrency = 16, 2000
			if by == "records" {
				opts.Records = 300
			} else {
				opts.Bytes = 780_000
			}
			source := b.source(&memsource.SourceOptions{OnPoll: func(context.Context) error { polls.Add(1); return nil }})
			_, stop := b.startWith(source, idempotent(blocking(b, "stuck", gate)), opts)
			b.wait(5 * time.Second)
			g := b.log.gauge()
			if g.InFlight < 250 || g.InFlight > 400 {
				t.Errorf("%d in flight with a limit of 300 records or so in %s", g.InFlight, by)
			}
			close(gate)
			b.wait(20 * time.Second)
			if err := stop(); err != nil {
				t.Error(err)
			}
			if b.ledger.total() != 1600 {
				t.Errorf("%d booked after the effects had ended, bounded by %s", b.ledger.total(), by)
			}
		})
	}
}

func TestPausesEndWithTheAssignment(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.to(0, "stuck-", 300, 0)
		gate := make(chan struct{})
		opts := b.options()
		opts.PartitionRecords, opts.BatchSize = 50, 10
		_, stop := b.start(idempotent(blocking(b, "stuck", gate)), opts)
		b.wait(5 * time.Second)
		if p := b.log.gauge().Partitions; len(p) == 0 || b.ledger.total() != 0 {
			t.Fatal(p)
		}
		b.broker.Rebalance(group)
		b.wait(40 * time.Second)
		close(gate)
		b.wait(40 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if b.ledger.total() != 300 || b.committed(0) != 300 {
			t.Errorf("%d booked, committed %d", b.ledger.total(), b.committed(0))
		}
	})
}

// Settled deliveries behind a stuck one are not kept in memory, their payloads
// least of all: with a record that does not end the heap grows by what the log
// keeps, and else as without one.
func TestMemoryStaysFlatBehindAStuckRecord(t *testing.T) {
	if without, with := growth(t, false), growth(t, true); with-without > 8<<20 {
		t.Errorf("the heap grew by %d kB with a stuck record, by %d kB without one", with>>10, without>>10)
	}
}

// growth runs 4,000 records of 5 kB behind one that is stuck or not and says by
// how much the heap grew meanwhile.
func growth(t *testing.T, stuck bool) (grown int64) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		gate := make(chan struct{})
		if !stuck {
			close(gate)
		}
		opts := b.options()
		opts.Observer, opts.PartitionBytes = nil, 1<<30
		e := idempotent(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
			if strings.HasPrefix(string(in.Payload), "first") {
				<-gate
			}
			return effect.Receipt{}, nil
		})
		_, stop := b.start(e, opts)
		b.to(0, "first-", 1, 0)
		b.wait(time.Second)
		before := heap()
		for i := range 8 {
			b.to(0, fmt.Sprint("behind-", i, "-"), 500, 5000)
			b.wait(time.Second)
			if err := b.broker.Trim(partition0, b.broker.HighWatermark(partition0)); err != nil {
				t.Fatal(err)
			}
		}
		grown = heap() - before
		if stuck {
			close(gate)
		}
		b.wait(5 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if b.committed(0) != 4001 {
			t.Errorf("committed %d", b.committed(0))
		}
	})
	return grown
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

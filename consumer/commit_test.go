package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/memfence"
)

var partition0 = driver.TopicPartition{Topic: topic}

// commits keeps what a source was asked to commit.
type commits struct {
	all  []driver.Offset
	fail func(n int, o driver.Offset) memsource.Fault
}

func (c *commits) hook(_ context.Context, o driver.Offset) memsource.Fault {
	c.all = append(c.all, o)
	if c.fail == nil {
		return memsource.Fault{}
	}
	return c.fail(len(c.all), o)
}

func TestTheMarkMovesOverDeliveredRecords(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		skip := func(n int64) {
			if err := b.broker.Skip(partition0, n); err != nil {
				t.Fatal(err)
			}
		}
		b.produce("a", "", "order a") // 0
		skip(5)
		b.produce("b", "", "order b") // 6
		skip(1)
		b.produce("c", "", "order c") // 8
		skip(3)
		gate := make(chan struct{})
		e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			if string(in.Payload) == "order b" {
				<-gate
			}
			return b.ledger.bookEffect(ctx, in)
		}, forever())
		_, stop := b.start(e, b.options())
		b.wait(3 * time.Second)
		if b.committed(0) != 1 || b.ledger.total() != 2 {
			t.Errorf("committed %d with record 6 unfinished and 8 finished, want 1", b.committed(0))
		}
		close(gate)
		b.wait(3 * time.Second)
		if b.committed(0) != 12 {
			t.Errorf("committed %d, want 12: behind the offsets that are never delivered", b.committed(0))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestCommitsNeverGoBackwards(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 500 {
			b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
		}
		c := &commits{}
		c.fail = func(n int, _ driver.Offset) memsource.Fault {
			switch n % 3 {
			case 1:
				return memsource.Fault{Err: errors.New("request timed out")}
			case 2:
				return memsource.Fault{Err: errors.New("request timed out"), Applied: true}
			}
			return memsource.Fault{}
		}
		e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			return waits(b, time.Duration(1+in.Origin.Offset%13)*time.Millisecond)(ctx, in)
		}, forever())
		opts := b.options()
		opts.CommitInterval = 5 * time.Millisecond
		_, stop := b.startWith(b.source(&memsource.SourceOptions{OnCommit: c.hook}), e, opts)
		b.wait(5 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		for i := 1; i < len(c.all); i++ {
			if c.all[i].Offset < c.all[i-1].Offset {
				t.Fatalf("commit %d of %d after %d", i, c.all[i].Offset, c.all[i-1].Offset)
			}
		}
		if len(c.all) < 5 || b.committed(0) != 500 {
			t.Errorf("%d commits, committed %d", len(c.all), b.committed(0))
		}
	})
}

func TestACommitErrorOfOnePartitionDoesNotHideBehindTheOthers(t *testing.T) {
	bubble(t, 3, func(t *testing.T, b *bench) {
		for i := range 30 {
			if _, err := b.broker.ProduceTo(driver.TopicPartition{Topic: topic, Partition: int32(i % 3)}, driver.Record{
				Value: fmt.Append(nil, "order ", i), Headers: []driver.Header{{Key: "idempotency-key", Value: fmt.Append(nil, "id-", i)}},
			}); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		c := &commits{fail: func(_ int, o driver.Offset) memsource.Fault {
			if o.Partition == 1 && time.Since(start) < 5*time.Second {
				return memsource.Fault{Err: errors.New("rebalance in progress")}
			}
			return memsource.Fault{}
		}}
		_, stop := b.startWith(b.source(&memsource.SourceOptions{OnCommit: c.hook}), effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		b.wait(4 * time.Second)
		if b.committed(0) != 10 || b.committed(1) != 0 || b.committed(2) != 10 {
			t.Errorf("committed %d, %d and %d, want 10, 0 and 10", b.committed(0), b.committed(1), b.committed(2))
		}
		b.wait(4 * time.Second)
		if b.committed(1) != 10 {
			t.Errorf("committed %d after the error had passed", b.committed(1))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestACommitThatIsNotOwnedLosesThePartition(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 20 {
			b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
		}
		source := b.source(nil)
		opts := b.options()
		opts.Concurrency = 2
		_, stop := b.startWith(source, effect.Idempotent(waits(b, 300*time.Millisecond), forever()), opts)
		b.wait(100 * time.Millisecond)
		_, stopB := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		b.wait(100 * time.Millisecond)
		source.Evict()
		b.wait(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := stopB(); err != nil {
			t.Error(err)
		}
		if b.ledger.total() != 20 || b.committed(0) != 20 {
			t.Errorf("%d booked, committed %d, decisions %v", b.ledger.total(), b.committed(0), b.log)
		}
	})
}

func TestEveryCommitCarriesTheEpoch(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		b.runFor(3*time.Second, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		o, _ := b.broker.Committed(group, partition0)
		s := b.space()
		epoch := s.Epoch()
		if want := fmt.Sprintf("oncefence-1:%x", epoch[:]); o.Metadata != want || o.LeaderEpoch != 0 {
			t.Errorf("metadata %q with leader epoch %d, want %q and 0", o.Metadata, o.LeaderEpoch, want)
		}
	})
}

func TestAnotherEpochFailsClosed(t *testing.T) {
	for _, accept := range []bool{false, true} {
		bubble(t, 1, func(t *testing.T, b *bench) {
			b.produce("a", "", "order a")
			b.runFor(3*time.Second, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
			b.store = memfence.NewStore(nil) // emptied
			b.fence = b.fenceOver(b.store)
			b.produce("b", "", "order b")
			opts := b.options()
			opts.AcceptEpoch = accept
			_, stop := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), opts)
			b.wait(3 * time.Second)
			err := stop()
			o, _ := b.broker.Committed(group, partition0)
			switch {
			case accept && (err != nil || b.ledger.total() != 2 || o.Offset != 2):
				t.Errorf("accepted: %v, %d booked, committed %d", err, b.ledger.total(), o.Offset)
			case !accept && (!errors.Is(err, fence.ErrEpoch) || b.ledger.total() != 1 || o.Offset != 1):
				t.Errorf("not accepted: %v, %d booked, committed %d", err, b.ledger.total(), o.Offset)
			case !accept && !strings.Contains(err.Error(), "consumer.Options.AcceptEpoch"):
				t.Errorf("%v does not say what to do", err)
			}
		})
	}
}

func TestForeignMetadataIsTakenAsNone(t *testing.T) {
	for _, metadata := range []string{"", "garbage", "oncefence-1:", "oncefence-1:zz", "oncefence-1:" + strings.Repeat("x", 32), "oncefence-2:" + strings.Repeat("0", 32)} {
		bubble(t, 1, func(t *testing.T, b *bench) {
			b.produce("a", "", "order a")
			b.produce("b", "", "order b")
			b.broker.SetCommitted(group, driver.Offset{TopicPartition: partition0, Offset: 1, LeaderEpoch: 0, Metadata: metadata})
			b.runFor(3*time.Second, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
			o, _ := b.broker.Committed(group, partition0)
			if b.ledger.total() != 1 || o.Offset != 2 || !strings.HasPrefix(o.Metadata, "oncefence-1:") || len(o.Metadata) != 44 {
				t.Errorf("metadata %q: %d booked, committed %d with %q", metadata, b.ledger.total(), o.Offset, o.Metadata)
			}
		})
	}
}

func TestAnEpochThatChangesWhileRunningStopsTheConsumer(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		swap := &swapStore{Store: b.store}
		b.fence = b.fenceOver(swap)
		c, err := consumer.New(b.source(nil), b.fence, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context()) }()
		b.produce("a", "", "order a")
		b.wait(10 * time.Second)
		swap.Store = memfence.NewStore(nil)
		for i := range 10 { // the marker is read again with commits
			b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
			b.wait(2 * time.Second)
		}
		select {
		case err := <-ended:
			if !errors.Is(err, fence.ErrEpoch) {
				t.Errorf("Run: %v", err)
			}
		default:
			t.Fatal("the consumer still runs")
		}
	})
}

func TestAddedPartitionsStartAtTheBeginning(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		_, stop := b.startWith(b.source(&memsource.SourceOptions{Start: memsource.Latest}), effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		b.wait(time.Second)
		if err := b.broker.AddPartitions(topic, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := b.broker.ProduceTo(driver.TopicPartition{Topic: topic, Partition: 1}, driver.Record{Value: []byte("order x")}); err != nil {
			t.Fatal(err)
		}
		b.wait(3 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if b.ledger.count("order x") != 1 || b.committed(1) != 1 {
			t.Errorf("booked %d times, committed %d", b.ledger.count("order x"), b.committed(1))
		}
	})
}

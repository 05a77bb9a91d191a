package fieldfaults_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/requeue"
)

// BL-095: a thousand failures in a second come back through a delay topic of a
// second, none early and none a second late, and what is new does not wait for
// them.
func TestDelaysDoNotAddUp(t *testing.T) {
	const failing = 1000
	bubble(t, 2, func(t *testing.T, b *bench) {
		var mu sync.Mutex
		failed, longest, back := map[string]time.Time{}, time.Duration(0), 0
		fresh := map[string]time.Duration{}
		sent := map[string]time.Time{}
		e := effect.Idempotent(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
			mu.Lock()
			defer mu.Unlock()
			id := string(in.Payload)
			switch {
			case in.Origin.Partition == 1:
				fresh[id] = time.Since(sent[id])
			case in.Attempt == 1:
				failed[id] = time.Now()
				return effect.Receipt{}, effect.Temporary(errRefused)
			default:
				waited := time.Since(failed[id])
				if waited < time.Second {
					t.Errorf("%s came back early, after %v", id, waited)
				}
				longest = max(longest, waited)
				back++
			}
			return effect.Receipt{}, nil
		}, forever())
		opts := b.options()
		opts.Schedule = requeue.Schedule{Delays: []time.Duration{time.Second}, Jitter: -1}
		_, stop := b.start(b.broker.Source(group, []string{topic}, nil), e, opts)
		b.wait(time.Second)
		for i, id := range ids("failing-", failing) {
			b.put(0, id)
			if i%100 == 99 {
				b.wait(100 * time.Millisecond)
			}
		}
		for _, id := range ids("fresh-", 20) {
			mu.Lock()
			sent[id] = time.Now()
			mu.Unlock()
			b.put(1, id)
			b.wait(100 * time.Millisecond)
		}
		b.wait(5 * time.Second)
		stop()
		if back != failing || longest > 2*time.Second {
			t.Errorf("%d of %d came back, the last after %v", back, failing, longest)
		}
		if len(fresh) != 20 {
			t.Errorf("%d of 20 fresh records ran", len(fresh))
		}
		for id, after := range fresh {
			if after > 100*time.Millisecond {
				t.Errorf("%s ran %v after it was produced", id, after)
			}
		}
	})
}

// BL-088: a delay topic's partition that waits keeps waiting, and goes on at its
// due time, although another partition of the same member moves away meanwhile.
func TestAWaitOutlivesAMoveOfItsNeighbours(t *testing.T) {
	bubble(t, 4, func(t *testing.T, b *bench) {
		var mu sync.Mutex
		failed, waited := map[string]time.Time{}, map[string]time.Duration{}
		e := effect.Idempotent(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
			mu.Lock()
			defer mu.Unlock()
			id := string(in.Payload)
			if in.Attempt == 1 {
				failed[id] = time.Now()
				return effect.Receipt{}, effect.Temporary(errRefused)
			}
			waited[id] = time.Since(failed[id])
			return effect.Receipt{}, nil
		}, forever())
		options := func() *consumer.Options {
			opts := b.options()
			opts.Schedule = requeue.Schedule{Delays: []time.Duration{20 * time.Second}, Jitter: -1}
			opts.PartitionRecords = 8 // so that partitions are paused, too
			return opts
		}
		_, stopFirst := b.start(b.broker.Source(group, []string{topic}, nil), e, options())
		b.wait(time.Second)
		for p := range int32(4) {
			b.put(p, ids(string('a'+p)+"-", 50)...)
		}
		b.wait(5 * time.Second)
		_, stopSecond := b.start(b.broker.Source(group, []string{topic}, nil), e, options())
		b.wait(200 * time.Millisecond)
		_, stopThird := b.start(b.broker.Source(group, []string{topic}, nil), e, options())
		b.wait(2 * time.Minute)
		stopThird()
		stopSecond()
		stopFirst()
		if len(waited) != 200 {
			t.Errorf("%d of 200 came back", len(waited))
		}
		for id, d := range waited {
			if d < 20*time.Second || d > 30*time.Second {
				t.Errorf("%s came back after %v", id, d)
			}
		}
	})
}

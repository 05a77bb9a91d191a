package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// watcher is an effect that sees what overlaps and in which order it began.
type watcher struct {
	b       *bench
	lane    func(in effect.Input) string
	take    func(in effect.Input) time.Duration
	mu      sync.Mutex
	running map[string]int
	most    int // at once in one lane
	all     int
	allMost int // at once
	begun   map[string][]int64
}

func (w *watcher) run(ctx context.Context, in effect.Input) (effect.Receipt, error) {
	lane := w.lane(in)
	w.mu.Lock()
	if w.running == nil {
		w.running, w.begun = map[string]int{}, map[string][]int64{}
	}
	w.running[lane]++
	w.all++
	w.most, w.allMost = max(w.most, w.running[lane]), max(w.allMost, w.all)
	w.begun[lane] = append(w.begun[lane], in.Origin.Offset)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.running[lane]--
		w.all--
		w.mu.Unlock()
	}()
	return waits(w.b, w.take(in))(ctx, in)
}

func (w *watcher) ordered() bool {
	for _, offsets := range w.begun {
		for i := 1; i < len(offsets); i++ {
			if offsets[i] < offsets[i-1] {
				return false
			}
		}
	}
	return true
}

func uneven(in effect.Input) time.Duration {
	return time.Duration(1+in.Origin.Offset*7%11) * time.Millisecond
}

func TestOrderByKey(t *testing.T) {
	for _, kind := range []string{"idempotent", "at-most-once", "at-least-once"} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, b *bench) {
				for i := range 600 {
					b.produce(fmt.Sprint("id-", i), fmt.Sprint("k", i%7), fmt.Sprint("order ", i))
				}
				w := &watcher{b: b, lane: func(in effect.Input) string { return string(in.MessageKey) }, take: uneven}
				e := map[string]effect.Effect{
					"idempotent":    effect.Idempotent(w.run, forever()),
					"at-most-once":  effect.AtMostOnce(w.run, nil),
					"at-least-once": effect.AtLeastOnce(w.run, nil),
				}[kind]
				b.runFor(20*time.Second, e, b.options())
				if w.most != 1 || !w.ordered() || b.ledger.total() != 600 {
					t.Errorf("%d at once in a lane, in order %v, %d booked", w.most, w.ordered(), b.ledger.total())
				}
				if w.allMost < 5 {
					t.Errorf("only %d ran at once with 7 keys", w.allMost)
				}
			})
		})
	}
}

func TestOrderByPartition(t *testing.T) {
	bubble(t, 3, func(t *testing.T, b *bench) {
		for i := range 300 {
			b.produce(fmt.Sprint("id-", i), fmt.Sprint("k", i), fmt.Sprint("order ", i))
		}
		w := &watcher{b: b, lane: func(in effect.Input) string { return fmt.Sprint(in.Origin.Partition) }, take: uneven}
		opts := b.options()
		opts.Order = consumer.OrderByPartition
		b.runFor(20*time.Second, effect.Idempotent(w.run, forever()), opts)
		if w.most != 1 || w.allMost != 3 || !w.ordered() || b.ledger.total() != 300 {
			t.Errorf("%d at once in a partition, %d in all, in order %v, %d booked", w.most, w.allMost, w.ordered(), b.ledger.total())
		}
	})
}

func TestOrderNoneAndNilKeysAreNotOrdered(t *testing.T) {
	for _, key := range []string{"", "same"} {
		bubble(t, 1, func(t *testing.T, b *bench) {
			for i := range 300 {
				b.produce(fmt.Sprint("id-", i), key, fmt.Sprint("order ", i))
			}
			w := &watcher{b: b, lane: func(effect.Input) string { return "" }, take: func(effect.Input) time.Duration { return 10 * time.Millisecond }}
			opts := b.options()
			if key != "" {
				opts.Order = consumer.OrderNone
			}
			b.runFor(5*time.Second, effect.Idempotent(w.run, forever()), opts)
			if w.allMost != consumer.DefaultConcurrency || b.ledger.total() != 300 {
				t.Errorf("key %q: %d at once, want %d; %d booked", key, w.allMost, consumer.DefaultConcurrency, b.ledger.total())
			}
		})
	}
}

// Claims ahead of a lane are answered in any order; its effects are not run so.
func TestClaimsAheadDoNotReorder(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 20 {
			b.produce(fmt.Sprint("id-", i), "k", fmt.Sprint("order ", i))
		}
		s := b.space()
		held := b.claim(s, "id-3", "order 3", fencedriver.KindIdempotent, 10*time.Second)
		w := &watcher{b: b, lane: func(effect.Input) string { return "" }, take: func(effect.Input) time.Duration { return time.Millisecond }}
		_, stop := b.start(effect.Idempotent(w.run, forever()), b.options())
		b.wait(5 * time.Second)
		if got := b.ledger.total(); got != 3 {
			t.Errorf("%d ran while another process holds the key of the fourth", got)
		}
		t2 := held.Hold.Release()
		if a := s.Apply(t.Context(), []fencedriver.Transition{t2}); a[0].Err != nil {
			t.Fatal(a[0].Err)
		}
		held.Hold.Drop()
		b.wait(5 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if w.most != 1 || !w.ordered() || b.ledger.total() != 20 {
			t.Errorf("%d at once, in order %v, %d booked", w.most, w.ordered(), b.ledger.total())
		}
	})
}

func TestAKeyInWorkWaitsInThisProcess(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for range 10 {
			b.produce("same", "", "order a")
		}
		_, stop := b.start(effect.Idempotent(waits(b, 20*time.Second), forever()), b.options())
		b.wait(15 * time.Second)
		if b.log.count("held") != 0 || b.log.count("new") != 1 {
			t.Errorf("decisions %v: the store must not be asked for a key that is in work here", b.log)
		}
		b.wait(10 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if b.ledger.total() != 1 || b.log.count("duplicate") != 9 || b.committed(0) != 10 {
			t.Errorf("%d booked, decisions %v, committed %d", b.ledger.total(), b.log, b.committed(0))
		}
	})
}

func TestOneHotKeyDoesNotStarveTheOthers(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 2000 {
			key := "hot"
			if i%10 == 9 {
				key = fmt.Sprint("k", i)
			}
			b.produce(fmt.Sprint("id-", i), key, key)
		}
		opts := b.options()
		opts.Concurrency, opts.BatchSize = 4, 64
		_, stop := b.start(effect.Idempotent(waits(b, 10*time.Millisecond), forever()), opts)
		b.wait(2 * time.Second)
		others := 0
		b.ledger.mu.Lock()
		for what, n := range b.ledger.booked {
			if strings.HasPrefix(what, "k") {
				others += n
			}
		}
		b.ledger.mu.Unlock()
		// The hot key could run 200 in these 2 s, waiting its turn behind the others.
		if others != 200 {
			t.Errorf("%d of 200 records with other keys ran beside %d of the hot key", others, b.ledger.count("hot"))
		}
		if b.ledger.count("hot") < 140 {
			t.Errorf("the hot key ran %d times in 2 s of 10 ms each", b.ledger.count("hot"))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

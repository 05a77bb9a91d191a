package consumer_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
)

// soak is a group of members to which things happen at random.
type soak struct {
	b       *bench
	t       *testing.T
	kind    string
	change  func(*consumer.Options)
	sink    *sink
	members []*member
	graves  []*member
	wanted  []string // payloads that were produced

	mu    sync.Mutex
	rnd   *rand.Rand
	calm  bool
	until time.Time // the store is down
}

func (s *soak) n(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.IntN(n)
}

// fault fails a step now and then, and every store request of an outage.
func (s *soak) fault(what string) (drop, lose bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isStore := what == "claim" || what == "marker" || strings.HasPrefix(what, "apply")
	switch {
	case s.calm || what == "poll" || what == "effect begins":
		return false, false
	case isStore && time.Now().Before(s.until):
		return true, false
	}
	x := s.rnd.IntN(100)
	return x < 3, x >= 97
}

// answer is what the sink says: mostly yes, and every sort of no at times, never
// on the last attempts, so that all can be applied.
func (s *soak) answer(in effect.Input) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.rnd.IntN(100)
	switch {
	case strings.HasPrefix(string(in.Payload), "never"):
		return false, effect.Permanent(errPlain)
	case s.calm || x >= 20:
		return true, nil
	case x < 10:
		return false, effect.Temporary(errPlain)
	case x < 15:
		return true, errPlain
	}
	return false, errPlain
}

func (s *soak) join() {
	m := newMachine(0, false)
	m.fault = func(what string) (drop, lose bool) {
		if what == "marker" && m.count() < 6 {
			return false, false // a process that cannot start is another story
		}
		return s.fault(what)
	}
	s.members = append(s.members, s.b.boot(m, s.sink.kind(s.kind, m), s.change))
}

// take removes a member at random.
func (s *soak) take() *member {
	i := s.n(len(s.members))
	x := s.members[i]
	s.members = append(s.members[:i], s.members[i+1:]...)
	return x
}

func (s *soak) produce() {
	for range s.n(12) {
		if len(s.wanted) > 0 && s.n(4) == 0 { // again, perhaps elsewhere
			i := s.n(len(s.wanted))
			s.b.produce(fmt.Sprint("id-", i), fmt.Sprint("k", s.n(9)), s.wanted[i])
			continue
		}
		what := "order "
		if s.n(20) == 0 {
			what = "never "
		}
		i := len(s.wanted)
		s.wanted = append(s.wanted, fmt.Sprint(what, i))
		s.b.produce(fmt.Sprint("id-", i), fmt.Sprint("k", i%9), s.wanted[i])
	}
}

// happen lets one thing happen to the group.
func (s *soak) happen() {
	switch s.n(8) {
	case 0:
		x := s.take()
		x.m.die("by chance")
		s.graves = append(s.graves, x)
		if s.n(2) == 0 {
			time.Sleep(time.Duration(s.n(3000)) * time.Millisecond)
		}
		x.source.Evict()
		s.join()
	case 1:
		x := s.take()
		x.cancel()
		_ = <-x.ended //nolint:staticcheck // errors are faults that were still at work
		s.join()
	case 2:
		s.b.broker.Rebalance(group)
	case 3:
		s.members[s.n(len(s.members))].source.Lose()
	case 4:
		s.members[s.n(len(s.members))].source.Evict()
	case 5:
		s.mu.Lock()
		s.until = time.Now().Add(time.Duration(s.rnd.IntN(4000)) * time.Millisecond)
		s.mu.Unlock()
	}
}

func (s *soak) check() {
	dead := map[string]bool{}
	for _, d := range s.b.deadLetters() {
		dead[string(d.Value)] = true
	}
	for _, what := range s.wanted {
		n := s.sink.count(what)
		if n > 1 && s.kind != "at-least-once" {
			s.t.Errorf("%s was applied %d times", what, n)
		}
		if n == 0 && !dead[what] {
			s.t.Errorf("%s is lost: neither applied nor a dead letter", what)
		}
	}
	if left := s.b.allCommitted(); left != "" {
		s.t.Error(left)
	}
}

func seed(t *testing.T) uint64 {
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("ONCEFENCE_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ONCEFENCE_SEED=%d", n)
	return n
}

// options are chosen at random, the same for all members.
func (s *soak) options() func(*consumer.Options) {
	inPlace, order := s.n(3) == 0, consumer.Ordering(s.n(3))
	small, held, lease := s.n(2) == 0, time.Duration(500+s.n(3000))*time.Millisecond, time.Duration(1000+s.n(2000))*time.Millisecond
	s.t.Logf("in place %v, order %d, small windows %v, held limit %v, lease %v, batch %v", inPlace, order, small, held, lease, s.sink.batch)
	return func(o *consumer.Options) {
		o.InPlace, o.Order, o.HeldLimit, o.Lease, o.DrainTimeout = inPlace, order, held, lease, 3*time.Second
		o.MaxCrashes = 1000 // what is killed here is killed from outside
		o.Schedule = exact(200*time.Millisecond, 500*time.Millisecond, time.Second)
		if small {
			o.PartitionRecords, o.Records, o.BatchSize = 8, 24, 5
		}
	}
}

// TestSoak: whatever happens to the group, in the end everything is applied once
// or a dead letter, and committed.
func TestSoak(t *testing.T) {
	started := seed(t)
	for i, kind := range []string{"idempotent", "probed", "at-most-once", "at-least-once", "idempotent", "at-most-once"} {
		t.Run(fmt.Sprint(kind, i), func(t *testing.T) {
			bubble(t, 4, func(t *testing.T, b *bench) {
				s := &soak{b: b, t: t, kind: kind, rnd: rand.New(rand.NewPCG(started, uint64(i)))}
				s.sink = newSink(kind == "idempotent", s.answer)
				s.sink.batch = s.n(3) == 0
				s.change = s.options()
				for range 3 {
					s.join()
				}
				for range 60 {
					s.produce()
					time.Sleep(time.Duration(s.n(800)) * time.Millisecond)
					s.happen()
				}
				s.mu.Lock()
				s.calm = true
				s.mu.Unlock()
				b.wait(time.Minute)
				if left := b.allCommitted(); left != "" {
					for _, x := range s.members {
						t.Errorf("%s; ready %v, healthy %v; has %q", left, x.c.Ready(), x.c.Healthy(), x.c.Assigned())
					}
				}
				for _, x := range s.members {
					x.stop(b)
				}
				for _, x := range s.graves {
					x.bury()
				}
				s.check()
			})
		})
	}
}

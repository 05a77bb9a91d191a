package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
)

// member is a consumer on a machine.
type member struct {
	m      *machine
	source *machineSource
	c      *consumer.Consumer
	cancel context.CancelFunc
	ended  chan error
}

// boot starts a consumer on a machine.
func (b *bench) boot(m *machine, e effect.Effect, change func(*consumer.Options)) *member {
	b.t.Helper()
	opts := b.options()
	opts.Producer = &machineProducer{Producer: opts.Producer, m: m}
	opts.Concurrency, opts.Lease, opts.Schedule = 3, 2*time.Second, exact(200*time.Millisecond, time.Second)
	if change != nil {
		change(opts)
	}
	x := &member{m: m, source: &machineSource{Source: b.source(nil), m: m}, ended: make(chan error, 1)}
	c, err := consumer.New(x.source, b.fenceOver(&machineStore{Store: b.store, m: m}), e, opts)
	if err != nil {
		b.t.Fatal(err)
	}
	x.c = c
	ctx, cancel := context.WithCancel(b.t.Context())
	x.cancel = cancel
	go func() { x.ended <- c.Run(ctx) }()
	return x
}

// bury ends the goroutines of a dead machine.
func (x *member) bury() {
	close(x.m.buried)
	x.cancel()
	_ = <-x.ended //nolint:staticcheck // how it ended is of no interest: its machine is dead
}

// stop ends a living one.
func (x *member) stop(b *bench) {
	b.t.Helper()
	x.cancel()
	if err := <-x.ended; err != nil {
		b.t.Errorf("Run: %v", err)
	}
	if left := x.c.Leftovers(); left != "" {
		b.t.Errorf("after a clean stop the loop still counts %s", left)
	}
}

// allCommitted reports the first partition of any topic but the dead letters
// that is not committed to its end.
func (b *bench) allCommitted() string {
	for _, name := range b.broker.Topics() {
		if strings.HasSuffix(name, ".dlq") {
			continue
		}
		for p := range b.broker.Partitions(name) {
			tp := driver.TopicPartition{Topic: name, Partition: int32(p)}
			o, _ := b.broker.Committed(group, tp)
			if end := b.broker.HighWatermark(tp); o.Offset != end {
				return fmt.Sprintf("%s partition %d is committed at %d of %d", name, p, o.Offset, end)
			}
		}
	}
	return ""
}

// crashOrders writes one record of each sort and returns the answers of a sink.
func (b *bench) crashOrders() func(effect.Input) (bool, error) {
	for i, value := range []string{"plain 0", "temporary", "plain 1", "unknown applied", "unknown not applied", "permanent", "plain 2"} {
		b.produce(fmt.Sprint("id-", i), fmt.Sprint("k", i%3), value)
	}
	b.produce("id-0", "k0", "plain 0") // a duplicate
	b.produce("id-2", "k2", "a conflict")
	poison := driver.Record{Topic: topic, Key: []byte("k1"), Value: []byte("poison")}
	for _, id := range []string{"x", "y"} {
		poison.Headers = append(poison.Headers, driver.Header{Key: "idempotency-key", Value: []byte(id)})
	}
	b.produceRecord(poison)
	return func(in effect.Input) (bool, error) {
		switch string(in.Payload) {
		case "temporary":
			if in.Attempt == 1 {
				return false, effect.Temporary(errPlain)
			}
		case "unknown applied":
			if in.Attempt == 1 {
				return true, errPlain
			}
		case "unknown not applied":
			if in.Attempt == 1 {
				return false, errPlain
			}
		case "permanent":
			return false, effect.Permanent(errPlain)
		}
		return true, nil
	}
}

// settledWell checks what may have become of crashOrders.
func (b *bench) settledWell(kind string, s *sink) {
	b.t.Helper()
	dead := map[string]bool{}
	for _, d := range b.deadLetters() {
		dead[string(d.Value)] = true
	}
	for _, value := range []string{"plain 0", "plain 1", "plain 2", "temporary", "unknown applied", "unknown not applied"} {
		n := s.count(value)
		switch {
		case n > 1 && kind != "at-least-once":
			b.t.Errorf("%s was applied %d times", value, n)
		case n == 0 && kind != "at-most-once":
			b.t.Errorf("%s was not applied", value)
		case n == 0 && !dead[value]:
			b.t.Errorf("%s is lost: neither applied nor a dead letter", value)
		}
	}
	for _, value := range []string{"permanent", "a conflict", "poison"} {
		if n := s.count(value); !dead[value] && (value != "a conflict" || kind != "at-least-once") || n != 0 && kind != "at-least-once" {
			b.t.Errorf("%s was applied %d times, dead letter %v", value, n, dead[value])
		}
	}
	if left := b.allCommitted(); left != "" {
		b.t.Error(left)
	}
}

// A process dies at each step that others can see, before it and after it, and
// another one goes on: nothing is lost, nothing happens twice.
func TestCrashAtEachStep(t *testing.T) {
	inPlace := func(o *consumer.Options) { o.InPlace = true }
	for _, c := range []struct {
		name, kind string
		change     func(*consumer.Options)
	}{
		{"idempotent", "idempotent", nil},
		{"probed", "probed", nil},
		{"at-most-once", "at-most-once", nil},
		{"at-least-once", "at-least-once", nil},
		{"idempotent in place", "idempotent", inPlace},
		{"at-most-once in place", "at-most-once", inPlace},
	} {
		t.Run(c.name, func(t *testing.T) {
			for killAt, steps := 0, 1; killAt <= steps; killAt++ {
				for _, after := range []bool{false, true} {
					at := ""
					bubble(t, 2, func(t *testing.T, b *bench) {
						n := crashOnce(b, c.kind, c.change, killAt, after, &at)
						if killAt == 0 {
							steps = n
						}
					})
					if t.Failed() {
						t.Fatalf("killed at step %d of %d: %s", killAt, steps, at)
					}
				}
			}
		})
	}
}

// A record whose effect takes the process down each time ends as a dead letter,
// and its neighbours survive: none is parked, none is lost.
func TestARecordThatKillsItsProcess(t *testing.T) {
	for _, kind := range []string{"idempotent", "probed"} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, b *bench) {
				for i := range 40 {
					b.produce(fmt.Sprint("id-", i), fmt.Sprint("k", i%5), fmt.Sprint("order ", i))
				}
				s := newSink(kind == "idempotent", nil)
				crashes := 0
				var graves []*member
				for {
					m := newMachine(0, false)
					deadly := func(in effect.Input) (bool, error) {
						if string(in.Payload) == "order 7" {
							m.die("order 7")
							return false, errDead
						}
						return true, nil
					}
					s.answer = deadly
					x := b.boot(m, s.kind(kind, m), nil)
					select {
					case <-m.dead:
					case <-time.After(30 * time.Second):
					}
					if m.alive() {
						x.stop(b)
						break
					}
					if crashes++; crashes > 10 {
						t.Fatal("it goes on killing")
					}
					x.source.Evict()
					graves = append(graves, x)
					b.wait(time.Second)
				}
				for _, x := range graves {
					x.bury()
				}
				dead := b.deadLetters()
				if crashes != consumer.DefaultMaxCrashes || len(dead) != 1 || string(dead[0].Value) != "order 7" || header(dead[0], "oncefence-reason") != "crashed 3 times" {
					t.Errorf("%d crashes, dead letters %v", crashes, dead)
				}
				for i := range 40 {
					want := 1
					if i == 7 {
						want = 0
					}
					if n := s.count(fmt.Sprint("order ", i)); n != want {
						t.Errorf("order %d was applied %d times", i, n)
					}
				}
				if left := b.allCommitted(); left != "" {
					t.Error(left)
				}
			})
		})
	}
}

func crashOnce(b *bench, kind string, change func(*consumer.Options), killAt int, after bool, at *string) (steps int) {
	s := newSink(kind == "idempotent", b.crashOrders())
	m := newMachine(killAt, after)
	first := b.boot(m, s.kind(kind, m), change)
	select {
	case <-m.dead:
		*at = m.at
	case <-time.After(5 * time.Second):
		*at = "alive for 5 s"
		m.die("the end")
	}
	steps = m.count()
	b.wait(time.Duration(killAt%3) * time.Second) // the group notices at once, or late
	first.source.Evict()
	second := newMachine(0, false)
	member := b.boot(second, s.kind(kind, second), change)
	b.wait(12 * time.Second)
	member.stop(b)
	first.bury()
	b.settledWell(kind, s)
	return steps
}

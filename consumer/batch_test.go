package consumer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// slices is a batch effect that keeps what it was given.
type slices struct {
	b      *bench
	answer func(in effect.Input) error
	end    func(in []effect.Input) // panics or ends the goroutine
	mu     sync.Mutex
	given  [][]effect.Input
}

func (s *slices) run(ctx context.Context, in []effect.Input) []effect.Outcome {
	s.mu.Lock()
	s.given = append(s.given, in)
	s.mu.Unlock()
	if s.end != nil {
		s.end(in)
	}
	time.Sleep(time.Millisecond)
	out := effect.NewOutcomes(in)
	for i := range in {
		out[i].Err = nil
		if s.answer != nil {
			out[i].Err = s.answer(in[i])
		}
		if out[i].Err == nil {
			out[i].Receipt, out[i].Err = s.b.ledger.bookEffect(ctx, in[i])
		}
	}
	return out
}

func (s *slices) longest() (n int) {
	for _, g := range s.given {
		n = max(n, len(g))
	}
	return n
}

func batchKinds(s *slices, maxBatch int) map[string]effect.Effect {
	ask := func(context.Context, effect.Input) (effect.Finding, error) { return effect.NotApplied(), nil }
	return map[string]effect.Effect{
		"idempotent":    effect.IdempotentBatch(s.run, effect.IdempotentOptions{Remembers: effect.Forever, MaxBatch: maxBatch}),
		"probed":        effect.ProbedBatch(s.run, ask, effect.ProbedOptions{Settled: effect.Immediately, MaxBatch: maxBatch}),
		"at-most-once":  effect.AtMostOnceBatch(s.run, &effect.AtMostOnceOptions{MaxBatch: maxBatch}),
		"at-least-once": effect.AtLeastOnceBatch(s.run, &effect.AtLeastOnceOptions{MaxBatch: maxBatch}),
	}
}

func TestBatchFormsFillSlicesUpToTheirLimit(t *testing.T) {
	for _, kind := range []string{"idempotent", "probed", "at-most-once", "at-least-once"} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, b *bench) {
				for i := range 500 {
					b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
				}
				s := &slices{b: b}
				opts := b.options()
				opts.Concurrency = 2
				b.runFor(5*time.Second, batchKinds(s, 20)[kind], opts)
				if b.ledger.total() != 500 || s.longest() != 20 || b.committed(0)+b.committed(1) != 500 {
					t.Errorf("%d booked in %d calls, the longest of %d; committed %d", b.ledger.total(), len(s.given), s.longest(), b.committed(0)+b.committed(1))
				}
			})
		})
	}
}

func TestOneKeyIsNeverTwiceInASlice(t *testing.T) {
	for _, kind := range []string{"idempotent", "probed", "at-most-once", "at-least-once"} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, b *bench) {
				for i := range 200 { // five ids, any message key
					b.produce(fmt.Sprint("id-", i%5), "", fmt.Sprint("order ", i%5))
				}
				s := &slices{b: b}
				b.runFor(5*time.Second, batchKinds(s, 50)[kind], b.options())
				for _, in := range s.given {
					seen := map[string]bool{}
					for _, x := range in {
						if seen[x.Key] {
							t.Fatalf("%s is twice in a slice of %d", x.Key, len(in))
						}
						seen[x.Key] = true
					}
				}
				want := 5
				if kind == "at-least-once" {
					want = 200
				}
				if b.ledger.total() != want || b.committed(0)+b.committed(1) != 200 {
					t.Errorf("%d booked, want %d; committed %d", b.ledger.total(), want, b.committed(0)+b.committed(1))
				}
			})
		})
	}
}

func TestOneOutcomeForEachRecordOfASlice(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 40 {
			b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
		}
		s := &slices{b: b, answer: func(in effect.Input) error {
			switch string(in.Payload) {
			case "order 3":
				return effect.Permanent(errPlain)
			case "order 7":
				if in.Attempt == 1 {
					return effect.Temporary(errPlain)
				}
			case "order 9":
				return errPlain
			}
			return nil
		}}
		b.runFor(10*time.Second, batchKinds(s, 40)["at-most-once"], b.options())
		if b.ledger.total() != 38 || len(b.deadLetters()) != 2 || b.committed(0) != 40 {
			t.Errorf("%d booked, %d dead letters, committed %d", b.ledger.total(), len(b.deadLetters()), b.committed(0))
		}
		for id, doubt := range map[string]bool{"id-3": false, "id-9": true} {
			if r := b.record(id); r.State != fencedriver.Dead || r.InDoubt != doubt {
				t.Errorf("%s: %s, in doubt %v", id, r.State, r.InDoubt)
			}
		}
		if r := b.record("id-7"); r.State != fencedriver.Done || r.Attempt != 2 {
			t.Errorf("id-7: %s at attempt %d", r.State, r.Attempt)
		}
	})
}

func TestASliceThatDiesLeavesAllItsRecordsUnknown(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("no") }, "goexit": goexit} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, b *bench) {
				for i := range 30 {
					b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
				}
				died := false
				s := &slices{b: b}
				s.end = func([]effect.Input) {
					if !died {
						died = true
						end()
					}
				}
				opts := b.options()
				opts.Concurrency = 1
				b.runFor(10*time.Second, batchKinds(s, 10)["idempotent"], opts)
				first := len(s.given[0])
				if b.log.count("unknown") != first || b.ledger.total() != 30 || b.committed(0) != 30 {
					t.Errorf("a slice of %d died: decisions %v, %d booked, committed %d", first, b.log, b.ledger.total(), b.committed(0))
				}
			})
		})
	}
}

func TestAWrongNumberOfOutcomesIsUnknown(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		b.produce("b", "", "order b")
		e := effect.AtMostOnceBatch(func(context.Context, []effect.Input) []effect.Outcome { return nil }, nil)
		b.runFor(5*time.Second, e, b.options())
		if len(b.deadLetters()) != 2 || b.log.count("parked") != 2 {
			t.Errorf("decisions %v", b.log)
		}
	})
}

package consumer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
)

func contains(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s is nil, want %q", what, parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: %v; want %q in it", what, err, p)
		}
	}
}

func TestHealthBeforeAndAfterRun(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		c, err := consumer.New(b.source(nil), b.fence, idempotent(b.ledger.bookEffect), b.options())
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(c.Ready(), consumer.ErrNotRunning) || !errors.Is(c.Healthy(), consumer.ErrNotRunning) {
			t.Errorf("before Run: %v, %v", c.Ready(), c.Healthy())
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		b.wait(2 * time.Second)
		if c.Ready() != nil || c.Healthy() != nil {
			t.Errorf("while it runs: %v, %v", c.Ready(), c.Healthy())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if !errors.Is(c.Ready(), consumer.ErrNotRunning) || !errors.Is(c.Healthy(), consumer.ErrNotRunning) {
			t.Errorf("after Run: %v, %v", c.Ready(), c.Healthy())
		}
	})
}

func TestAMemberWithoutPartitionsIsNotReadyButHealthy(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		opts := b.options()
		opts.InPlace = true // no retry topics that it could have
		_, stop := b.start(idempotent(b.ledger.bookEffect), opts)
		b.wait(time.Second)
		opts2 := b.options()
		opts2.InPlace = true
		c, stop2 := b.start(idempotent(b.ledger.bookEffect), opts2)
		b.wait(3 * time.Second)
		contains(t, "Ready", c.Ready(), "no partition is assigned")
		if err := c.Healthy(); err != nil {
			t.Errorf("Healthy: %v", err)
		}
		if err := errors.Join(stop(), stop2()); err != nil {
			t.Error(err)
		}
	})
}

func TestReadySaysThatTheConsumerStops(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		c, stop := b.start(idempotent(waits(b, 20*time.Second)), b.options())
		b.wait(2 * time.Second)
		ended := make(chan error)
		go func() { ended <- stop() }()
		b.wait(5 * time.Second)
		contains(t, "Ready", c.Ready(), "the consumer is stopping")
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestHealthySaysWhatAPartitionWaitsFor(t *testing.T) {
	for name, c := range map[string]struct {
		effect func(b *bench) effect.Effect
		setup  func(b *bench)
		why    string
	}{
		"effect": {func(b *bench) effect.Effect { return idempotent(waits(b, time.Hour)) }, func(*bench) {}, "its effect runs"},
		"held": {
			func(b *bench) effect.Effect { return idempotent(b.ledger.bookEffect) },
			func(b *bench) { b.claim(b.space(), "a", "order a", 2, 10*time.Second) }, "its key is held by another process",
		},
		"probe": {func(b *bench) effect.Effect {
			ask := func(context.Context, effect.Input) (effect.Finding, error) { return effect.Finding{}, nil }
			s := &script{b: b, answers: []error{errPlain}}
			return effect.Probed(s.run, ask, effect.ProbedOptions{Settled: time.Hour})
		}, func(*bench) {}, "waits until the sink may be asked: connection reset"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, b *bench) {
				c.setup(b)
				b.wait(500 * time.Millisecond)
				since := time.Now()
				b.produce("a", "", "order a")
				opts := b.options()
				opts.StuckAfter, opts.HeldLimit, opts.DrainTimeout = 30*time.Second, time.Hour, time.Second
				cons, stop := b.start(c.effect(b), opts)
				b.wait(20 * time.Second)
				if err := cons.Healthy(); err != nil {
					t.Errorf("after 20 s: %v", err)
				}
				b.wait(12 * time.Second)
				contains(t, "Healthy", cons.Healthy(), "orders partition 0 stands at offset 0 since "+since.UTC().Format(time.RFC3339)+": "+c.why)
				if err := cons.Ready(); err != nil {
					t.Errorf("Ready: %v", err)
				}
				_ = stop()
			})
		})
	}
}

func TestACopyThatIsNotDueIsNotStuck(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		s := &script{b: b, answers: []error{effect.Temporary(errPlain), nil}}
		opts := b.options()
		opts.StuckAfter, opts.Schedule = 5*time.Second, exact(time.Minute)
		c, stop := b.start(idempotent(s.run), opts)
		for range 30 {
			b.wait(time.Second)
			if err := c.Healthy(); err != nil {
				t.Fatal(err)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestHealthyNamesAnOpenTransaction(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		opts := b.options()
		opts.StuckAfter = 10 * time.Second
		c, stop := b.start(idempotent(b.ledger.bookEffect), opts)
		b.produce("a", "", "order a")
		b.wait(2 * time.Second)
		if err := b.broker.Open(partition0); err != nil {
			t.Fatal(err)
		}
		b.produce("b", "", "order b")
		b.wait(15 * time.Second)
		contains(t, "Healthy", c.Healthy(), "stands at offset 1 since", "blocked by an open transaction")
		if err := b.broker.End(partition0, true); err != nil {
			t.Fatal(err)
		}
		b.wait(3 * time.Second)
		if err := c.Healthy(); err != nil || b.ledger.total() != 2 {
			t.Errorf("Healthy: %v, %d booked", err, b.ledger.total())
		}
		// The marker behind the last record is no lag.
		for _, p := range b.log.gauge().Partitions {
			if p.Topic == topic && p.Lag != 0 {
				t.Errorf("%v: lag %d", p.TopicPartition, p.Lag)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestHealthyNamesAPartitionThatCannotBeFetched(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for range 5 {
			b.produce("", "", "order")
		}
		b.broker.SetCommitted(group, driver.Offset{TopicPartition: partition0, Offset: 1, LeaderEpoch: -1})
		if err := b.broker.Trim(partition0, 3); err != nil {
			t.Fatal(err)
		}
		c, stop := b.startWith(b.source(&memsource.SourceOptions{}), idempotent(b.ledger.bookEffect), b.options())
		b.wait(5 * time.Second)
		contains(t, "Healthy", c.Healthy(), "orders partition 0", "cannot fetch", "position 1 is not in the log")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestHealthyNoticesALoopThatStands(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		gate := make(chan struct{})
		opts := b.options()
		opts.Observer = &blockingObserver{decisions: b.log, gate: gate}
		b.produce("a", "", "order a")
		c, stop := b.start(idempotent(b.ledger.bookEffect), opts)
		b.wait(30 * time.Second)
		contains(t, "Healthy", c.Healthy(), "the loop does not run since")
		contains(t, "Ready", c.Ready(), "the loop does not run since")
		close(gate)
		b.wait(3 * time.Second)
		if err := c.Healthy(); err != nil {
			t.Error(err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// blockingObserver breaks its contract: Decided waits.
type blockingObserver struct {
	*decisions
	gate chan struct{}
}

func (o *blockingObserver) Decided(d consumer.Decision) {
	if d.Decision == consumer.DecisionDone {
		<-o.gate
	}
	o.decisions.Decided(d)
}

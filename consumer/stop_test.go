package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// waits is an effect that takes its time, or until its context ends.
func waits(b *bench, d time.Duration) effect.Func {
	return func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		select {
		case <-time.After(d):
			return b.ledger.bookEffect(ctx, in)
		case <-ctx.Done():
			return effect.Receipt{}, ctx.Err()
		}
	}
}

func TestStopWaitsForWhatRunsAndReleasesTheRest(t *testing.T) {
	bubble(t, 2, func(t *testing.T, b *bench) {
		for i := range 100 {
			b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
		}
		opts := b.options()
		opts.Concurrency = 4
		_, stop := b.start(effect.Idempotent(waits(b, 20*time.Second), forever()), opts)
		b.wait(5 * time.Second)
		begin := time.Now()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 16*time.Second {
			t.Errorf("the stop took %v, the effects had 15 s to go", took)
		}
		if b.ledger.total() != 4 || b.log.count("done") != 4 {
			t.Errorf("%d effects ran to their end, decisions %v", b.ledger.total(), b.log)
		}
		done, absent := 0, 0
		for i := range 100 {
			switch r := b.record(fmt.Sprint("id-", i)); r.State {
			case fencedriver.Done:
				done++
			case fencedriver.Absent:
				absent++
			default:
				t.Errorf("id-%d is left %s", i, r.State)
			}
		}
		if done != 4 || absent != 96 {
			t.Errorf("%d done, %d absent: what never started must be released", done, absent)
		}
	})
}

func TestStopLeavesWhatDoesNotEndToItsLease(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		b.produce("b", "", "order b")
		quick := b.ledger.bookEffect
		slow := stuck(b, "order a", time.Hour)
		e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			if string(in.Payload) == "order a" {
				return slow(ctx, in)
			}
			return quick(ctx, in)
		}, forever())
		opts := b.options()
		opts.DrainTimeout = 5 * time.Second
		_, stop := b.start(e, opts)
		b.wait(2 * time.Second)
		begin := time.Now()
		err := stop()
		if err == nil || !strings.Contains(err.Error(), "1 deliveries were still under way after the drain time of 5s") {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("the stop took %v with a drain time of 5 s", took)
		}
		if b.committed(0) != 0 || b.record("a").State != fencedriver.Pending {
			t.Errorf("committed %d, record %s", b.committed(0), b.record("a").State)
		}
		// The next process takes over after the lease and runs it again.
		b.runFor(15*time.Second, effect.Idempotent(quick, forever()), b.options())
		if b.committed(0) != 2 || b.record("a").State != fencedriver.Done {
			t.Errorf("committed %d, record %s", b.committed(0), b.record("a").State)
		}
		time.Sleep(time.Hour)
	})
}

func TestStopEndsContextsAtTheDrainTime(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		opts := b.options()
		opts.DrainTimeout = 3 * time.Second
		_, stop := b.start(effect.AtMostOnce(waits(b, time.Hour), nil), opts)
		b.wait(time.Second)
		if err := stop(); err != nil {
			t.Fatalf("the effect ended with its context, so nothing was left: %v", err)
		}
		if r := b.record("a"); r.State != fencedriver.Dead || !r.InDoubt || b.committed(0) != 1 {
			t.Errorf("record %s, in doubt %v, committed %d", r.State, r.InDoubt, b.committed(0))
		}
	})
}

func TestRunReportsAllThatWentWrong(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		failing := false
		source := b.broker.Source(group, []string{topic}, &memsource.SourceOptions{OnCommit: func(context.Context, driver.Offset) memsource.Fault {
			if failing {
				return memsource.Fault{Err: errors.New("coordinator is loading")}
			}
			return memsource.Fault{}
		}})
		c, err := consumer.New(source, b.fence, effect.Idempotent(waits(b, 2*time.Second), forever()), b.options())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		b.wait(time.Second)
		failing = true
		cancel()
		err = <-ended
		if err == nil || !strings.Contains(err.Error(), "the last commit of topic orders partition 0 at offset 1 failed") {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestAFatalPollErrorEndsRunAfterDraining(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		fail := false
		source := b.broker.Source(group, []string{topic}, &memsource.SourceOptions{OnPoll: func(context.Context) error {
			if fail {
				return fmt.Errorf("fenced by a twin: %w", driver.ErrFatal)
			}
			return nil
		}})
		c, err := consumer.New(source, b.fence, effect.Idempotent(waits(b, 5*time.Second), forever()), b.options())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context()) }()
		b.wait(time.Second)
		fail = true
		b.produce("b", "", "order b") // wakes the poll
		if err := <-ended; !errors.Is(err, driver.ErrFatal) {
			t.Errorf("Run: %v", err)
		}
		if b.ledger.count("order a") != 1 || b.committed(0) < 1 {
			t.Errorf("order a booked %d times, committed %d", b.ledger.count("order a"), b.committed(0))
		}
	})
}

func TestPollErrorsAreTriedAgain(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		polls := 0
		source := b.broker.Source(group, []string{topic}, &memsource.SourceOptions{OnPoll: func(context.Context) error {
			if polls++; polls <= 5 {
				return errors.New("broker not available")
			}
			return nil
		}})
		c, err := consumer.New(source, b.fence, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		b.wait(10 * time.Second)
		cancel()
		if err := <-ended; err != nil || b.committed(0) != 1 {
			t.Errorf("Run: %v, committed %d", err, b.committed(0))
		}
	})
}

func TestRunCanBeCalledOnce(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		c, stop := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		b.wait(time.Second)
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "called before") {
			t.Errorf("second Run: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAContextThatEndedBeforeRunStopsCleanly(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "", "order a")
		c, err := consumer.New(b.broker.Source(group, []string{topic}, nil), b.fence, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
		if b.ledger.total() != 0 {
			t.Error("an effect ran")
		}
	})
}

func TestNoGoroutineOutlivesRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3)
		for round := range 3 {
			for i := range 50 {
				b.produce(fmt.Sprint("id-", round, i), fmt.Sprint(i), fmt.Sprint("order ", i))
			}
			e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
				if len(in.Payload)%7 == 0 {
					return effect.Receipt{}, effect.Temporary(errPlain)
				}
				return b.ledger.bookEffect(ctx, in)
			}, forever())
			b.runFor(3*time.Second, e, b.options())
		}
		synctest.Wait()
		stack := make([]byte, 1<<18)
		stack = stack[:runtime.Stack(stack, true)]
		for _, ours := range []string{"/consumer.(*", "/fence.(*", "/memsource.(*"} {
			if bytes.Contains(stack, []byte(ours)) {
				t.Errorf("a goroutine is in %s after Run:\n%s", ours, stack)
			}
		}
	})
}

package size

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/test/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// loop is a consumer under way.
type loop struct {
	ran   atomic.Int64 // effects
	stop  context.CancelFunc
	ended chan error
}

// start runs a consumer with an effect that does nothing but call each.
func start(tb testing.TB, source driver.Source, store fencedriver.Store, opts consumer.Options, each func(ran int64, in *effect.Input)) *loop {
	tb.Helper()
	quiet := slog.New(slog.DiscardHandler)
	f, err := fence.New(store, &fence.Options{Logger: quiet})
	if err != nil {
		tb.Fatal(err)
	}
	l := &loop{ended: make(chan error, 1)}
	e := effect.Idempotent(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		each(l.ran.Add(1), &in)
		return effect.Receipt{}, nil
	}, effect.IdempotentOptions{Remembers: effect.Forever})
	opts.Logger = quiet
	if opts.Producer == nil {
		opts.Producer = nowhere{}
	}
	c, err := consumer.New(source, f, e, &opts)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(tb.Context()))
	l.stop = stop
	go func() { l.ended <- c.Run(ctx) }()
	return l
}

// wait waits for done and fails when the consumer ends before, or when that
// takes minutes.
func (l *loop) wait(tb testing.TB, done <-chan struct{}) {
	tb.Helper()
	select {
	case <-done:
	case err := <-l.ended:
		tb.Fatalf("Run: %v", err)
	case <-time.After(3 * time.Minute):
		tb.Fatalf("%d effects ran in 3 minutes", l.ran.Load())
	}
}

// end stops the consumer and fails unless it stops cleanly.
func (l *loop) end(tb testing.TB) {
	tb.Helper()
	l.stop()
	if err := <-l.ended; err != nil {
		tb.Errorf("Run: %v", err)
	}
}

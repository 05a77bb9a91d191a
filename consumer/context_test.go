package consumer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
)

type contextKey struct{}

// runContext runs one effect under a context that carries a value and returns
// what f makes of the effect's context.
func runContext(b *bench, f func(ctx context.Context) error) {
	b.t.Helper()
	b.produce("a", "", "order a")
	e := effect.AtLeastOnce(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		return effect.Receipt{}, f(ctx)
	}, &effect.AtLeastOnceOptions{MaxRunTime: 20 * time.Second})
	c, err := consumer.New(b.source(nil), nil, e, b.options())
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithValue(b.t.Context(), contextKey{}, "of Run"), 5*time.Second)
	defer cancel()
	if err := c.Run(ctx); err != nil {
		b.t.Error(err)
	}
}

func TestTheEffectsContextHasTheValuesOfRunNotItsEnd(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		runContext(b, func(ctx context.Context) error {
			deadline, ok := ctx.Deadline()
			if left := time.Until(deadline); !ok || left != 20*time.Second || ctx.Value(contextKey{}) != "of Run" {
				t.Errorf("deadline in %v, value %v", left, ctx.Value(contextKey{}))
			}
			time.Sleep(10 * time.Second) // Run's context ends meanwhile
			if ctx.Err() != nil {
				t.Errorf("the context ended with Run's: %v", ctx.Err())
			}
			return nil
		})
	})
}

// What an effect leaves behind ends with it.
func TestTheContextEndsWhenTheEffectReturns(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		var after, child, grandchild context.Context
		var called atomic.Int64
		stopped := false
		runContext(b, func(ctx context.Context) error {
			after = ctx
			var cancel, cancelGrandchild context.CancelFunc
			child, cancel = context.WithTimeout(ctx, time.Hour)
			grandchild, cancelGrandchild = context.WithCancel(child)
			t.Cleanup(func() { cancelGrandchild(); cancel() })
			context.AfterFunc(ctx, func() { called.Add(1) })
			stopped = context.AfterFunc(ctx, func() { called.Add(100) })()
			if ctx.Err() != nil || child.Err() != nil {
				t.Error("ended while it runs")
			}
			return nil
		})
		if !errors.Is(after.Err(), context.Canceled) || !errors.Is(child.Err(), context.Canceled) || grandchild.Err() == nil || called.Load() != 1 || !stopped {
			t.Errorf("context %v, child %v, functions called %d, stopped %v", after.Err(), child.Err(), called.Load(), stopped)
		}
		select {
		case <-after.Done(): // asked for when it is over
		default:
			t.Error("Done is open")
		}
	})
}

func TestTheContextSaysDeadlineExceeded(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		var err, childErr error
		b.produce("a", "", "order a")
		e := effect.AtMostOnce(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			<-child.Done()
			err, childErr = ctx.Err(), child.Err()
			return effect.Receipt{}, err
		}, &effect.AtMostOnceOptions{MaxRunTime: 3 * time.Second})
		b.runFor(10*time.Second, e, b.options())
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(childErr, context.DeadlineExceeded) {
			t.Errorf("context %v, child %v", err, childErr)
		}
	})
}

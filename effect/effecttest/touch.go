package effecttest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// touched is a context that notices when the effect looks at it. It is how a
// run is stopped in the middle without knowing anything about the effect.
type touched struct {
	inner context.Context
	touch func()
}

func (c *touched) Deadline() (time.Time, bool) { c.touch(); return c.inner.Deadline() }
func (c *touched) Done() <-chan struct{}       { c.touch(); return c.inner.Done() }
func (c *touched) Err() error                  { c.touch(); return c.inner.Err() }
func (c *touched) Value(key any) any           { c.touch(); return c.inner.Value(key) }

// endAt returns a context that ends when the effect looks at it for the nth
// time, and whether it has looked so often.
func endAt(inner context.Context, end context.CancelFunc, n int64) (ctx context.Context, reached func() bool) {
	var looks atomic.Int64
	touch := func() {
		if looks.Add(1) == n {
			end()
		}
	}
	return &touched{inner, touch}, func() bool { return looks.Load() >= n }
}

// holdAt returns a context at which the effect stops when it first looks at it.
// held is closed then; it goes on after release.
func holdAt(inner context.Context) (ctx context.Context, held <-chan struct{}, release func()) {
	heldCh, releaseCh := make(chan struct{}), make(chan struct{})
	var stop, free sync.Once
	touch := func() {
		stop.Do(func() { close(heldCh) })
		<-releaseCh // not inside Do: every look waits, and on a channel
	}
	return &touched{inner, touch}, heldCh, func() { free.Do(func() { close(releaseCh) }) }
}

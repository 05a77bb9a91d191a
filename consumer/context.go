package consumer

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errLeaseEnded is the cause of an effect's context that ended with its claim.
var errLeaseEnded = errors.New("the lease of the claim ended")

// effectContext is the context of one call of an effect, single or batch. It
// has no timer of its own: the loop's sweep ends it with the lease, the maximum
// run time or the drain, whichever is first. Its channel is made only when
// somebody asks for it.
type effectContext struct {
	parent   context.Context //nolint:containedctx // this is a context
	items    []*item
	started  time.Time
	deadline time.Time

	mu      sync.Mutex
	done    chan struct{}
	err     error
	cause   error
	after   map[*func()]struct{}
	ended   time.Time // when it was cancelled
	orphan  bool      // given up: another item goes on
	isProbe bool
}

// Deadline is the end of the maximum run time.
func (c *effectContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done is closed when the effect must stop.
func (c *effectContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// Err is nil until the effect must stop.
func (c *effectContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Value asks the context of Run.
func (c *effectContext) Value(key any) any { return c.parent.Value(key) }

// AfterFunc lets package context follow this context without a goroutine.
func (c *effectContext) AfterFunc(f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = make(map[*func()]struct{})
	}
	c.after[&f] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waiting := c.after[&f]
		delete(c.after, &f)
		return waiting
	}
}

// end cancels the context, once.
func (c *effectContext) end(err, cause error, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err, c.cause, c.ended = err, cause, now
	if c.done != nil {
		close(c.done)
	}
	for f := range c.after {
		go (*f)()
	}
	c.after = nil
}

// release frees what children of a returned effect may still hold on to.
func (c *effectContext) release() { c.end(context.Canceled, nil, time.Time{}) }

// state returns when and why it was cancelled; the zero time if it was not.
func (c *effectContext) state() (ended time.Time, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended, c.cause
}

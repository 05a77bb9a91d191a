package fencetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// Harness tells the suite how to reach a store.
type Harness struct {
	// Open makes a store. It is called once for each rule and may give access
	// to data that other calls see too: every rule uses a namespace of its own
	// and leaves it behind. The suite closes what Open returns.
	Open func(ctx context.Context) (driver.Store, error)
	// Second opens another handle on the data of first, as another process
	// would. nil: the store allows one process only, the rules about two handles
	// are reported as skipped.
	Second func(ctx context.Context, first driver.Store) (driver.Store, error)
	// Pass returns when the store's clock has moved on by at least d. nil waits
	// that long.
	Pass func(ctx context.Context, d time.Duration) error
	// FreeTime says that Pass costs nothing, as in a synctest bubble: the suite
	// then waits for hours where a rule speaks of hours.
	FreeTime bool
	// Lease is the shortest lease that makes sense on the store, also used as a
	// retention. 0 means 50 ms. The suite never has to do anything within it.
	Lease time.Duration
	// Around runs the body of each rule in [Test], for instance synctest.Test.
	// nil calls the body.
	Around func(t *testing.T, body func(t *testing.T))
	// Parallel runs the rules of [Test] beside each other. Not with synctest.
	Parallel bool
}

const defaultLease = 50 * time.Millisecond

func (h Harness) withDefaults() (Harness, error) {
	if h.Open == nil {
		return h, errors.New("harness has no Open")
	}
	if h.Lease < 0 {
		return h, fmt.Errorf("harness has a negative lease of %v", h.Lease)
	}
	if h.Lease == 0 {
		h.Lease = defaultLease
	}
	if h.Pass == nil {
		h.Pass = wait
	}
	return h, nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package kafkarequeue

import (
	"fmt"
	"log/slog"
	"time"
)

// Create says what Ensure does about a topic that is missing.
type Create uint8

const (
	// CreateMissing makes missing retry and dead-letter topics. Never a source
	// topic.
	CreateMissing Create = iota
	// CreateNever makes nothing: a missing topic is an error that holds the
	// command which makes it.
	CreateNever
)

// Options of a producer. Nil means the defaults.
type Options struct {
	// Create says whether missing topics are made; by default they are.
	Create Create
	// DeliveryTimeout is the longest time that Produce takes: what is not
	// acknowledged by then is answered as unknown. 0 means 15 s; less than 1 s is
	// refused. It should be well below the share of the rebalance time-out that
	// the loop may spend on draining.
	DeliveryTimeout time.Duration
	// Log gets what was tolerated or made; nil means slog.Default().
	Log *slog.Logger
}

const (
	defaultDeliveryTimeout = 15 * time.Second
	minDeliveryTimeout     = time.Second
)

func (o *Options) withDefaults() (Options, error) {
	var filled Options
	if o != nil {
		filled = *o
	}
	if filled.Create > CreateNever {
		return filled, fmt.Errorf("kafka requeue: Options.Create %d: use CreateMissing or CreateNever", filled.Create)
	}
	if filled.DeliveryTimeout == 0 {
		filled.DeliveryTimeout = defaultDeliveryTimeout
	}
	if filled.DeliveryTimeout < minDeliveryTimeout {
		return filled, fmt.Errorf("kafka requeue: Options.DeliveryTimeout %v: use %v or more, 0 for %v", filled.DeliveryTimeout, minDeliveryTimeout, defaultDeliveryTimeout)
	}
	if filled.Log == nil {
		filled.Log = slog.Default()
	}
	return filled, nil
}

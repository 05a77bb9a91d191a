package member

import (
	"context"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Decisions of events that are about a rebalance and not about a record.
const (
	Assigned = "assigned"
	Revoked  = "revoked"
	Lost     = "lost_partitions"
)

// told is a source that tells of rebalances.
type told struct {
	driver.Source
	events *events
}

// Start implements driver.Source.
func (s *told) Start(ctx context.Context, extra []driver.Subscription, h driver.Handler) error {
	return s.Source.Start(ctx, extra, toldHandler{h, s.events})
}

type toldHandler struct {
	driver.Handler
	events *events
}

// Assigned implements driver.Handler.
func (h toldHandler) Assigned(a []driver.Assignment) {
	h.events.say(Event{Decision: Assigned})
	h.Handler.Assigned(a)
}

// Revoked implements driver.Handler.
func (h toldHandler) Revoked(ctx context.Context, p []driver.TopicPartition) {
	h.events.say(Event{Decision: Revoked})
	h.Handler.Revoked(ctx, p)
}

// Lost implements driver.Handler.
func (h toldHandler) Lost(p []driver.TopicPartition) {
	h.events.say(Event{Decision: Lost})
	h.Handler.Lost(p)
}

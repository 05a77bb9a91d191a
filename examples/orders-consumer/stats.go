package main

import (
	"encoding/json"
	"io"
	"sync/atomic"
	"time"

	"github.com/oncefence/oncefence/consumer"
)

// counts is what the consumers stream to their parent.
type counts struct {
	Deliveries int64 `json:"deliveries"`
	Requeued   int64 `json:"requeued"`
	InDoubt    int64 `json:"in_doubt"`
}

// stats is a consumer.Observer that counts. The counts leave the process as
// they come, so a kill loses next to none.
type stats struct {
	deliveries, requeued, inDoubt atomic.Int64
	changed                       chan struct{}
}

func newStats() *stats { return &stats{changed: make(chan struct{}, 1)} }

func (s *stats) touch() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Delivered implements consumer.Observer.
func (s *stats) Delivered(records int) {
	s.deliveries.Add(int64(records))
	s.touch()
}

// Decided implements consumer.Observer.
func (s *stats) Decided(d consumer.Decision) {
	switch d.Decision {
	case consumer.DecisionRequeued:
		s.requeued.Add(1)
	case consumer.DecisionInDoubt, consumer.DecisionUnknown:
		s.inDoubt.Add(1)
	default:
		return
	}
	s.touch()
}

// Ran implements consumer.Observer.
func (s *stats) Ran(string, string, time.Duration) {}

// Gauges implements consumer.Observer.
func (s *stats) Gauges(consumer.Gauges) {}

// Committed implements consumer.Observer.
func (s *stats) Committed(int, int) {}

func (s *stats) read() counts {
	return counts{Deliveries: s.deliveries.Load(), Requeued: s.requeued.Load(), InDoubt: s.inDoubt.Load()}
}

// stream writes the counts as JSON lines whenever they change, until done is
// closed, and once more then.
func (s *stats) stream(w io.Writer, done <-chan struct{}) {
	encoder := json.NewEncoder(w)
	for {
		select {
		case <-s.changed:
			_ = encoder.Encode(s.read()) // without a parent this process ends
		case <-done:
			_ = encoder.Encode(s.read())
			return
		}
	}
}

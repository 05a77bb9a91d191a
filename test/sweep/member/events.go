package member

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/oncefence/oncefence/consumer"
)

// Event is one decision of a member, streamed to its parent as it falls.
type Event struct {
	Decision  string `json:"d"`
	Key       string `json:"k,omitempty"`
	Partition int32  `json:"p"`
	Offset    int64  `json:"o"`
	Reason    string `json:"r,omitempty"`
}

// Ends reports whether the decision ends the claim that it is about.
func (e Event) Ends() bool {
	switch e.Decision {
	case consumer.DecisionDone, consumer.DecisionDuplicate, consumer.DecisionRequeued, consumer.DecisionDeadLetter,
		consumer.DecisionParked, consumer.DecisionDead, consumer.DecisionSuperseded:
		return true
	}
	return false
}

// Begins reports whether the decision says that this member holds the key.
func (e Event) Begins() bool {
	switch e.Decision {
	case consumer.DecisionNew, consumer.DecisionInDoubt, consumer.DecisionUnknown:
		return true
	}
	return false
}

// events is a consumer.Observer that writes decisions as JSON lines.
type events struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func newEvents(w io.Writer) *events { return &events{encoder: json.NewEncoder(w)} }

// Decided implements consumer.Observer.
func (e *events) Decided(d consumer.Decision) {
	e.say(Event{Decision: d.Decision, Key: d.Key, Partition: d.OriginPartition, Offset: d.OriginOffset, Reason: d.Reason})
}

func (e *events) say(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.encoder.Encode(event) // without a parent this process ends soon
}

// Delivered implements consumer.Observer.
func (e *events) Delivered(int) {}

// Ran implements consumer.Observer.
func (e *events) Ran(string, string, time.Duration) {}

// Gauges implements consumer.Observer.
func (e *events) Gauges(consumer.Gauges) {}

// Committed implements consumer.Observer.
func (e *events) Committed(int, int) {}

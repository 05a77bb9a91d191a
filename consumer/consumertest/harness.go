package consumertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Harness tells the suite how to reach a source and its broker. Each rule uses
// topics and a group of its own and leaves them behind.
type Harness struct {
	// Topic makes a topic that nobody uses and returns its name.
	Topic func(ctx context.Context, partitions int) (string, error)
	// Open makes a source that begins at the beginning where its group has no
	// position. The suite closes it.
	Open func(ctx context.Context, group string, topics []string) (driver.Source, error)
	// Produce writes records to their Topic and Partition, in order, with their
	// Key, Value, Headers and Timestamp. A zero Timestamp is the harness's to
	// choose.
	Produce func(ctx context.Context, records []driver.Record) error
	// Committed returns a group's position as the broker has it, -1 if there is
	// none.
	Committed func(ctx context.Context, group string, tp driver.TopicPartition) (offset int64, metadata string, err error)
	// Lose throws a member out of its group in such a way that it learns of it
	// without being asked to let go. nil: rules about that are skipped.
	Lose func(ctx context.Context, source driver.Source) error
	// Alone says that a group has one member only: rules about two are skipped.
	Alone bool
	// Session is how long a member that is not heard of stays in its group. 0:
	// rules that wait for it are skipped.
	Session time.Duration
	// Patience is how long a rule waits for what has to happen. Default 20 s.
	Patience time.Duration
	// Quiet is how long a rule watches that nothing happens. Default 300 ms.
	Quiet time.Duration
	// Around runs the body of each rule in [Test], for instance synctest.Test.
	// nil calls the body.
	Around func(t *testing.T, body func(t *testing.T))
	// Parallel runs the rules of [Test] beside each other. Not with synctest.
	Parallel bool
}

func (h Harness) withDefaults() (Harness, error) {
	if h.Topic == nil || h.Open == nil || h.Produce == nil || h.Committed == nil {
		return h, errors.New("harness needs Topic, Open, Produce and Committed")
	}
	if h.Patience <= 0 {
		h.Patience = 20 * time.Second
	}
	if h.Quiet <= 0 {
		h.Quiet = 300 * time.Millisecond
	}
	return h, nil
}

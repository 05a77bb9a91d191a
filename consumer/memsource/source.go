package memsource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Position says where reading begins or goes on when the group has no position
// that can be read from.
type Position int8

// The positions. What the zero value means stands at the option.
const (
	Default Position = iota
	Earliest
	Latest
)

// SourceOptions configures a source. nil means all defaults.
type SourceOptions struct {
	// Start is where a partition begins for which the group never committed.
	// Default: Earliest. Partitions that are added to a topic later, and those
	// of extra subscriptions, begin at the beginning all the same.
	Start Position
	// OnReset is where a partition goes on whose position is gone from the log.
	// Default: nowhere, the partition stands still with a [ResetError].
	OnReset Position
	// RebalanceTimeout is how long Revoked may take, and as long as that a
	// member that does not let go holds up the others. Default 10 s; negative
	// is refused by Start.
	RebalanceTimeout time.Duration
	// OnPoll is called before each Poll looks for records; its error is
	// answered. Default: none.
	OnPoll func(ctx context.Context) error
	// OnCommit is called once for each position, before any of them is
	// committed, and may make it fail. It may wait. Default: none.
	OnCommit func(ctx context.Context, offset driver.Offset) Fault
}

// Fault is what a hook makes of one position or record. The zero Fault lets it
// pass.
type Fault struct {
	// Err is answered.
	Err error
	// Applied lets it take effect all the same: an outcome that the caller
	// cannot know.
	Applied bool
}

// Source is one member of a group. It implements [driver.Source].
type Source struct {
	broker  *Broker
	group   *group
	topics  []string
	all     []string // with extra subscriptions
	options SourceOptions
	handler driver.Handler

	wake    chan struct{} // something to look at, for Poll
	bell    chan struct{} // something to do, for run
	stop    context.Context
	cancel  context.CancelFunc
	stopped chan struct{} // run has ended

	// The broker's mu guards these.
	events   []event
	holdings []*holding // in the order in which they are polled
	resets   []driver.Batch
	started  bool
	closing  bool
	closed   bool
	evicted  bool // and does not know it
}

var _ driver.Source = (*Source)(nil)

// Source returns a member of a group that reads topics. It joins when it is
// started and has to be closed then.
func (b *Broker) Source(group string, topics []string, opts *SourceOptions) *Source {
	o := SourceOptions{}
	if opts != nil {
		o = *opts
	}
	if o.RebalanceTimeout == 0 {
		o.RebalanceTimeout = 10 * time.Second
	}
	s := &Source{
		broker:  b,
		topics:  slices.Clone(topics),
		options: o,
		wake:    make(chan struct{}, 1),
		bell:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
	s.stop, s.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // the member outlives Start; Close ends it
	b.mu.Lock()
	defer b.mu.Unlock()
	s.group = b.group(group)
	return s
}

// Info implements [driver.Source]. Retention is the longest of the topics', if
// all of them tell it.
func (s *Source) Info() driver.Info {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	info := driver.Info{
		System:           "memory",
		Group:            s.group.name,
		Topics:           slices.Clone(s.topics),
		RebalanceTimeout: s.options.RebalanceTimeout,
	}
	if s.started {
		info.Protocol = "memory (cooperative)"
	}
	for _, name := range s.topics {
		t := s.broker.topics[name]
		switch {
		case t == nil || t.options.Retention == 0:
			info.Retention = 0
			return info
		case t.options.Retention < 0 || info.Retention < 0:
			info.Retention = -1
		default:
			info.Retention = max(info.Retention, t.options.Retention)
		}
	}
	return info
}

// Start implements [driver.Source].
func (s *Source) Start(ctx context.Context, extra []driver.Subscription, handler driver.Handler) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	switch {
	case s.closing:
		return driver.ErrClosed
	case s.started:
		return errors.New("source was started before: make a new one")
	case handler == nil:
		return errors.New("source needs a handler")
	case s.group.name == "":
		return errors.New("source needs the name of a group")
	case len(s.topics) == 0:
		return errors.New("source needs at least one topic")
	case s.options.RebalanceTimeout < 0:
		return fmt.Errorf("rebalance timeout of %v: use 0 for 10 s, or more", s.options.RebalanceTimeout)
	}
	s.all = slices.Clone(s.topics)
	for _, sub := range extra {
		s.all = append(s.all, sub.Topic)
	}
	for i, name := range s.all {
		if slices.Contains(s.all[:i], name) {
			return fmt.Errorf("topic %s is subscribed to twice", name)
		}
		if _, err := s.broker.find(name); err != nil {
			return err
		}
	}
	s.handler, s.started = handler, true
	s.broker.sources[s] = struct{}{}
	go s.run()
	s.group.join(s)
	return nil
}

// Close implements [driver.Source]. What the member still owns is revoked
// first; commits are possible until Revoked has returned or ctx has ended. It
// returns nil, or the context's error when the handler had not returned.
func (s *Source) Close(ctx context.Context) error {
	s.broker.mu.Lock()
	if !s.started {
		s.closing, s.closed = true, true
		s.cancel()
		s.broker.mu.Unlock()
		return nil
	}
	if !s.closing {
		s.closing = true
		s.push(event{kind: closed, ctx: ctx})
		s.wakeUp()
	}
	s.broker.mu.Unlock()

	var err error
	select {
	case <-s.stopped:
	case <-ctx.Done():
		err = fmt.Errorf("close of a member of group %s: %w", s.group.name, ctx.Err())
	}
	s.cancel()
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	s.finish()
	return err
}

// finish frees everything. It may be called again.
func (s *Source) finish() {
	if s.closed {
		return
	}
	s.closed = true
	s.holdings, s.resets = nil, nil
	delete(s.broker.sources, s)
	s.group.leave(s)
	s.wakeUp()
}

func (s *Source) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

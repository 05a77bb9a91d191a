package consumertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

// member is a member of the group as the loop would be one. It notes what it
// sees and checks what always holds.
type member struct {
	s      *scene
	source driver.Source

	// onAssigned and onRevoked are called within the handler's methods.
	onAssigned func(as []driver.Assignment)
	onRevoked  func(ctx context.Context, tps []driver.TopicPartition)

	cancel  context.CancelFunc
	polling chan struct{} // closed when the polling goroutine has ended
	calls   atomic.Int32

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	held    map[driver.TopicPartition]*assignment
	last    map[driver.TopicPartition]*assignment // held, or held last
	revoked int                                   // calls
	lost    int
	errs    []error // of polls and batches
	against []error // what a rule forbids
	closed  bool
}

// assignment is one partition, given once.
type assignment struct {
	driver.Assignment
	ready   bool // Assigned has returned
	records []driver.Record
	next    int64 // Batch.NextFetch
}

func newMember(s *scene, source driver.Source) *member {
	return &member{
		s: s, source: source, changed: make(chan struct{}),
		held: map[driver.TopicPartition]*assignment{}, last: map[driver.TopicPartition]*assignment{},
	}
}

// start starts the source.
func (m *member) start(extra ...string) {
	var subs []driver.Subscription
	for _, topic := range extra {
		subs = append(subs, driver.Subscription{Topic: topic})
	}
	ctx, cancel := m.s.patient()
	defer cancel()
	m.s.must(m.s.starts(ctx, m, subs...), "start")
}

// poll polls with a limit until stop or rest.
func (m *member) poll(limit int) {
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(m.s.ctx)
	m.polling = make(chan struct{})
	go func() {
		defer close(m.polling)
		for ctx.Err() == nil {
			batches, err := m.source.Poll(ctx, limit)
			m.take(batches, limit)
			if err != nil && ctx.Err() == nil {
				m.note(func() { m.errs = append(m.errs, err) })
				if errors.Is(err, driver.ErrFatal) || errors.Is(err, driver.ErrClosed) {
					return
				}
			}
		}
	}()
}

// rest ends polling.
func (m *member) rest() {
	if m.cancel == nil {
		return
	}
	m.cancel()
	m.cancel = nil
	timer := time.NewTimer(m.s.h.Patience)
	defer timer.Stop()
	select {
	case <-m.polling:
	case <-timer.C:
		m.breaks("Poll goes on %v after its context has ended", m.s.h.Patience)
	}
}

// stop ends polling and closes the source.
func (m *member) stop() {
	m.rest()
	if m.closed {
		return
	}
	m.closed = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.s.ctx), m.s.h.Patience)
	defer cancel()
	var err error
	if !m.s.within(func() { err = m.source.Close(ctx) }) {
		m.breaks("Close does not return, although its context has ended")
	} else if err != nil {
		m.breaks("close: %w", err)
	}
}

// note changes what was seen.
func (m *member) note(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *member) breaks(format string, args ...any) {
	m.note(func() { m.against = append(m.against, fmt.Errorf(format, args...)) })
}

func (m *member) broken() []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.against
}

// enter watches that calls of the handler do not overlap.
func (m *member) enter(call string) func() {
	if m.calls.Add(1) > 1 {
		m.breaks("%s was called while another call of the handler had not returned", call)
	}
	return func() { m.calls.Add(-1) }
}

// Assigned implements [driver.Handler].
func (m *member) Assigned(as []driver.Assignment) {
	defer m.enter("Assigned")()
	m.note(func() {
		for _, a := range as {
			if m.held[a.TopicPartition] != nil {
				m.against = append(m.against, fmt.Errorf("%v was assigned while the member had it", a.TopicPartition))
			}
			if before := m.last[a.TopicPartition]; before != nil && before.Generation >= a.Generation {
				m.against = append(m.against, fmt.Errorf("%v was assigned with generation %d after %d", a.TopicPartition, a.Generation, before.Generation))
			}
			m.held[a.TopicPartition] = &assignment{Assignment: a, next: -1}
			m.last[a.TopicPartition] = m.held[a.TopicPartition]
		}
	})
	if m.onAssigned != nil {
		m.onAssigned(as)
	}
	m.note(func() {
		for _, a := range as {
			m.last[a.TopicPartition].ready = true
		}
	})
}

// Revoked implements [driver.Handler].
func (m *member) Revoked(ctx context.Context, tps []driver.TopicPartition) {
	defer m.enter("Revoked")()
	if _, bounded := ctx.Deadline(); !bounded {
		m.breaks("Revoked has a context without deadline")
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.s.h.Patience)
		defer cancel()
	}
	m.note(func() { m.revoked++ })
	if m.onRevoked != nil {
		m.onRevoked(ctx, tps)
	}
	m.gone("Revoked", tps)
}

// Lost implements [driver.Handler].
func (m *member) Lost(tps []driver.TopicPartition) {
	defer m.enter("Lost")()
	m.note(func() { m.lost++ })
	m.gone("Lost", tps)
}

func (m *member) gone(call string, tps []driver.TopicPartition) {
	m.note(func() {
		for _, tp := range tps {
			if m.held[tp] == nil {
				m.against = append(m.against, fmt.Errorf("%s named %v, which the member had not", call, tp))
			}
			delete(m.held, tp)
		}
	})
}

// state tells what the member has, for errors; mu is held.
func (m *member) state() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d partitions", len(m.held))
	for tp, a := range m.held {
		fmt.Fprintf(&b, ", %s/%d with %d records", tp.Topic, tp.Partition, len(a.records))
	}
	if n := len(m.errs); n > 0 {
		fmt.Fprintf(&b, ", %d errors, the last: %v", n, m.errs[n-1])
	}
	return b.String()
}

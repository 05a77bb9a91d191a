package consumertest

import (
	"context"
	"fmt"

	"github.com/oncefence/oncefence/consumer/driver"
)

var lostRules = []Rule{
	{
		Name: "lost/told", Says: "a member that was thrown out is told by Lost, not by Revoked, and joins again under higher generations, at the committed positions", needs: needLose,
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			s.produce(tp, 5)
			m := s.start(tp.Topic)
			s.gets(m, tp, 0, 5)
			s.commits(m, tp, 2, "kept")
			m.mu.Lock()
			before := m.last[tp].Generation
			m.mu.Unlock()
			s.must(s.h.Lose(s.ctx, m.source), "the harness throws the member out")
			s.await(m, "Lost and a new assignment", func() bool { return m.lost > 0 && m.held[tp] != nil && m.held[tp].Generation > before })
			s.gets(m, tp, 2, 5)
			m.mu.Lock()
			defer m.mu.Unlock()
			s.want(m.revoked == 0, "Revoked was called")
			s.want(m.last[tp].Metadata == "kept", "the new assignment tells metadata %q", m.last[tp].Metadata)
		},
	},
	{
		Name: "lost/pauses", Says: "a pause ends with an assignment that was lost", needs: needLose,
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			m := s.start(tp.Topic)
			s.holds(m, tp)
			m.source.Pause([]driver.TopicPartition{tp})
			m.mu.Lock()
			before := m.last[tp].Generation
			m.mu.Unlock()
			s.must(s.h.Lose(s.ctx, m.source), "the harness throws the member out")
			s.await(m, "Lost and a new assignment", func() bool { return m.held[tp] != nil && m.held[tp].Generation > before })
			s.produce(tp, 3)
			s.gets(m, tp, 0, 3)
		},
	},
}

var closeRules = []Rule{
	{
		Name: "close/twice", Says: "Close may be called again and says nothing new",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			m := s.start(tp.Topic)
			s.holds(m, tp)
			m.stop()
			ctx, cancel := s.patient()
			defer cancel()
			s.must(m.source.Close(ctx), "the second close")
		},
	},
	{
		Name: "close/lets-go", Says: "after Close has returned nothing is called any more, and the member has nothing",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			m := s.start(tp.Topic)
			s.holds(m, tp)
			m.stop()
			m.mu.Lock()
			calls := m.revoked + m.lost
			m.mu.Unlock()
			s.quiet()
			m.mu.Lock()
			defer m.mu.Unlock()
			s.want(m.revoked+m.lost == calls, "the handler was called after Close")
			s.want(len(m.held) == 0, "the member was not told that %d partitions are gone", len(m.held))
		},
	},
	{
		Name: "close/slow-handler", Says: "Close waits for a handler within Revoked, whose context ends with Close's, and commits within it count",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			s.produce(tp, 3)
			m := s.open(tp.Topic)
			m.onRevoked = func(ctx context.Context, _ []driver.TopicPartition) {
				if err := s.commit(m, tp, 2, "at the end"); err != nil {
					m.breaks("commit within Revoked at Close: %w", err)
				}
				<-ctx.Done()
			}
			m.start()
			m.poll(100)
			s.gets(m, tp, 0, 3)
			s.closesInTime(m)
			s.wantCommitted("after close", tp, 2, "at the end")
		},
	},
	{
		Name: "close/stuck-handler", Says: "Close returns when its context ends although a handler does not return at all",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			m := s.open(tp.Topic)
			release := make(chan struct{})
			defer close(release)
			m.onRevoked = func(context.Context, []driver.TopicPartition) { <-release }
			m.start()
			m.poll(100)
			s.holds(m, tp)
			s.closesInTime(m)
		},
	},
}

// closesInTime closes with a context of a few quiets.
func (s *scene) closesInTime(m *member) {
	m.rest()
	m.closed = true
	limit := 3 * s.h.Quiet
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.source.Close(ctx) // it may say that it was cut off
	}()
	wait, stop := context.WithTimeout(s.ctx, limit+s.h.Patience/2)
	defer stop()
	select {
	case <-done:
	case <-wait.Done():
		s.failf("%s", fmt.Sprintf("close with a context of %v goes on after %v", limit, limit+s.h.Patience/2))
	}
}

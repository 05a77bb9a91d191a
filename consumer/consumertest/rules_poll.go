package consumertest

import (
	"context"
	"errors"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

var pollRules = []Rule{
	{
		Name: "poll/context", Says: "Poll returns when its context ends, and what comes later is not lost",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			m := s.start(tp.Topic)
			s.holds(m, tp)
			m.rest()
			for range 3 {
				ctx, cancel := context.WithTimeout(s.ctx, s.h.Quiet)
				begin := time.Now()
				batches, err := s.polls(ctx, m, 10)
				cancel()
				took := time.Since(begin)
				s.want(took < s.h.Quiet+s.h.Patience/2, "poll with a context of %v took %v", s.h.Quiet, took)
				s.want(len(batches) > 0 || errors.Is(err, context.DeadlineExceeded), "poll without records says %v", err)
			}
			ctx, cancel := context.WithCancel(s.ctx)
			cancel()
			batches, err := s.polls(ctx, m, 10)
			s.want(len(batches) > 0 || errors.Is(err, context.Canceled), "poll with a context that has ended says %v", err)
			s.produce(tp, 5)
			m.poll(100)
			s.gets(m, tp, 0, 5)
		},
	},
	{
		Name: "poll/rebalance", Says: "Poll returns when its context ends, while Revoked runs too", needs: needTwo,
		check: func(s *scene) {
			topic := s.topic(2)
			one := s.open(topic)
			entered, release := make(chan struct{}), make(chan struct{})
			one.onRevoked = func(ctx context.Context, _ []driver.TopicPartition) {
				close(entered)
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			one.start()
			one.poll(100)
			s.holds(one, of(topic, 0), of(topic, 1))
			two := s.start(topic)
			s.reaches(entered, "Revoked")
			s.quiet() // a poll is under way
			begin := time.Now()
			one.rest()
			took := time.Since(begin)
			one.onRevoked = nil
			close(release)
			s.want(took < s.h.Patience/4, "poll went on for %v after its context had ended", took)
			one.poll(100)
			moved := s.splits(one, two, topic, 2)
			s.produce(moved, 2)
			s.gets(two, moved, 0, 2)
		},
	},
	{
		Name: "poll/closed", Says: "Poll and Commit after Close answer ErrClosed",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			m := s.start(tp.Topic)
			s.holds(m, tp)
			m.stop()
			ctx, cancel := s.patient()
			defer cancel()
			batches, err := s.polls(ctx, m, 10)
			s.want(errors.Is(err, driver.ErrClosed) && len(batches) == 0, "poll says %v with %d batches", err, len(batches))
			err = s.commit(m, tp, 0, "")
			s.want(errors.Is(err, driver.ErrClosed), "commit says %v", err)
		},
	},
	{
		Name: "poll/close-ends-it", Says: "Close ends a Poll that waits",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			m := s.open(tp.Topic)
			m.start()
			result := make(chan error, 1)
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			go func() {
				for {
					if _, err := m.source.Poll(ctx, 10); err != nil {
						result <- err
						return
					}
				}
			}()
			s.holds(m, tp)
			m.stop()
			select {
			case err := <-result:
				s.want(errors.Is(err, driver.ErrClosed), "poll says %v", err)
			case <-time.After(s.h.Patience):
				s.failf("poll goes on")
			}
		},
	},
	{
		Name: "poll/stays", Says: "a member that polls stays in its group for longer than a session, without records too", needs: needSession,
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			m := s.start(tp.Topic)
			s.holds(m, tp)
			s.pass(s.h.Session * 3 / 2)
			m.mu.Lock()
			defer m.mu.Unlock()
			s.want(m.lost == 0 && m.revoked == 0 && m.held[tp] != nil, "%d calls of Lost, %d of Revoked", m.lost, m.revoked)
		},
	},
}

// reaches waits for a channel to be closed.
func (s *scene) reaches(ch <-chan struct{}, what string) {
	select {
	case <-ch:
	case <-time.After(s.h.Patience):
		s.failf("%s was not called in %v", what, s.h.Patience)
	}
}

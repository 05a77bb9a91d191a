package consumertest

import (
	"fmt"

	"github.com/oncefence/oncefence/consumer/driver"
)

var positionRules = []Rule{
	{
		Name: "position/assigned-first", Says: "no record of an assignment comes before Assigned has returned for it",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			s.produce(tp, 5)
			m := s.open(tp.Topic)
			m.onAssigned = func([]driver.Assignment) { s.pass(s.h.Quiet) } // batches that come meanwhile break a rule of their own
			m.start()
			m.poll(100)
			s.gets(m, tp, 0, 5)
		},
	},
	{
		Name: "position/first", Says: "an assignment without a committed position says so, and the first position is committed at once",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			s.produce(tp, 5)
			m := s.start(tp.Topic)
			s.gets(m, tp, 0, 5)
			m.mu.Lock()
			a := m.last[tp].Assignment
			m.mu.Unlock()
			s.want(a.Committed == -1 && a.Metadata == "", "the assignment tells a commit at %d with metadata %q", a.Committed, a.Metadata)
			s.wantCommitted("without any commit by the member", tp, 0, "")
		},
	},
	{
		Name: "position/partitions", Says: "an assignment tells the topic's number of partitions, if it tells one",
		check: func(s *scene) {
			topic := s.topic(3)
			m := s.start(topic)
			s.holds(m, of(topic, 0), of(topic, 1), of(topic, 2))
			m.mu.Lock()
			defer m.mu.Unlock()
			for tp, a := range m.held {
				s.want(a.Partitions == 0 || a.Partitions == 3, "%v: %d partitions, want 3", tp, a.Partitions)
			}
		},
	},
	{
		Name: "position/resume", Says: "after a restart delivery goes on at the committed position, and the assignment tells it with its metadata",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			s.produce(tp, 10)
			m := s.start(tp.Topic)
			s.gets(m, tp, 0, 10)
			s.commits(m, tp, 4, "first/4")
			s.commits(m, tp, 6, "second/6")
			m.stop()
			m = s.start(tp.Topic)
			s.gets(m, tp, 6, 10)
			m.mu.Lock()
			a := m.last[tp].Assignment
			m.mu.Unlock()
			s.want(a.Committed == 6 && a.Metadata == "second/6", "the assignment tells a commit at %d with metadata %q, want 6 with %q", a.Committed, a.Metadata, "second/6")
		},
	},
	{
		Name: "position/end", Says: "a restart at the end of the log delivers nothing but what is new",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			s.produce(tp, 3)
			m := s.start(tp.Topic)
			s.gets(m, tp, 0, 3)
			s.commits(m, tp, 3, "")
			m.stop()
			m = s.start(tp.Topic)
			s.holds(m, tp)
			s.stays(m, tp)
			s.produce(tp, 2)
			s.gets(m, tp, 3, 5)
		},
	},
}

var commitRules = []Rule{
	{
		Name: "commit/as-asked", Says: "the group's position moves by Commit only, to what was asked for, with its metadata",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			s.produce(tp, 10)
			m := s.start(tp.Topic)
			s.gets(m, tp, 0, 10)
			s.quiet()
			s.wantCommitted("all is delivered and nothing committed", tp, 0, "")
			long := fmt.Sprintf("%0200d", 7)
			for _, c := range []struct {
				offset   int64
				metadata string
			}{{3, "m"}, {7, long}, {8, ""}} {
				s.commits(m, tp, c.offset, c.metadata)
				s.wantCommitted("after a commit", tp, c.offset, c.metadata)
			}
			s.produce(tp, 5)
			s.gets(m, tp, 0, 15)
			m.stop()
			s.wantCommitted("after close", tp, 8, "")
		},
	},
	{
		Name: "commit/repeated", Says: "the same position may be committed again",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			s.produce(tp, 5)
			m := s.start(tp.Topic)
			s.gets(m, tp, 0, 5)
			s.commits(m, tp, 2, "a")
			s.commits(m, tp, 2, "b")
			s.wantCommitted("after the second", tp, 2, "b")
		},
	},
	{
		Name: "commit/not-owned", Says: "a partition that the member does not have answers ErrNotOwned and is not committed; the others of the same call are, each with an answer in its place",
		check: func(s *scene) {
			topic, foreign := s.topic(2), s.topic(1)
			s.produce(of(topic, 0), 3)
			s.produce(of(topic, 1), 3)
			m := s.start(topic)
			s.gets(m, of(topic, 0), 0, 3)
			s.gets(m, of(topic, 1), 0, 3)
			ctx, cancel := s.patient()
			defer cancel()
			errs := m.source.Commit(ctx, []driver.Offset{
				{TopicPartition: of(topic, 1), Offset: 2, LeaderEpoch: -1},
				{TopicPartition: of(foreign, 0), Offset: 1, LeaderEpoch: -1},
				{TopicPartition: of(topic, 0), Offset: 1, LeaderEpoch: -1},
			})
			s.want(len(errs) == 3, "three positions got %d answers", len(errs))
			s.want(errs[0] == nil && errs[2] == nil, "own partitions: %v, %v", errs[0], errs[2])
			s.wantNotOwned(errs[1])
			s.wantCommitted("own", of(topic, 1), 2, "")
			s.wantCommitted("own", of(topic, 0), 1, "")
			s.wantCommitted("foreign", of(foreign, 0), -1, "")
		},
	},
	{
		Name: "commit/nothing", Says: "a commit of no positions has no answers",
		check: func(s *scene) {
			topic := s.topic(1)
			m := s.start(topic)
			s.holds(m, of(topic, 0))
			errs := m.source.Commit(s.ctx, nil)
			s.want(len(errs) == 0, "answers %v", errs)
		},
	},
}

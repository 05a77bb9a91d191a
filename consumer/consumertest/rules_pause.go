package consumertest

import (
	"context"

	"github.com/oncefence/oncefence/consumer/driver"
)

var pauseRules = []Rule{
	{
		Name: "pause/stops", Says: "a paused partition delivers nothing while the others go on, and after Resume all that came meanwhile, once and in order",
		check: func(s *scene) {
			topic := s.topic(2)
			quiet, busy := of(topic, 0), of(topic, 1)
			s.produce(quiet, 5)
			m := s.start(topic)
			s.gets(m, quiet, 0, 5)
			m.source.Pause([]driver.TopicPartition{quiet})
			s.quiet() // for a poll that has begun before
			s.produce(quiet, 50)
			s.produce(busy, 10)
			s.gets(m, busy, 0, 10)
			s.stays(m, quiet)
			s.gets(m, quiet, 0, 5)
			m.source.Resume([]driver.TopicPartition{quiet})
			s.gets(m, quiet, 0, 55)
		},
	},
	{
		Name: "pause/buffered", Says: "what the source had fetched for a partition when it was paused is not lost and does not come twice",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			s.produce(tp, 100)
			m := s.open(tp.Topic)
			m.start()
			for round := range 3 {
				s.pollsUntil(m, "some records", func() bool { return m.last[tp] != nil && len(m.last[tp].records) > 3*round })
				m.source.Pause([]driver.TopicPartition{tp})
				m.source.Pause([]driver.TopicPartition{tp}) // twice is once
				m.mu.Lock()
				before := len(m.last[tp].records)
				m.mu.Unlock()
				ctx, cancel := context.WithTimeout(s.ctx, s.h.Quiet)
				_, _ = s.polls(ctx, m, 3)
				cancel()
				m.mu.Lock()
				after := len(m.last[tp].records)
				m.mu.Unlock()
				s.want(after == before, "%d records came while the partition was paused", after-before)
				m.source.Resume([]driver.TopicPartition{tp})
			}
			m.poll(100)
			s.gets(m, tp, 0, 100)
		},
	},
	{
		Name: "pause/before-records", Says: "a partition that is paused within Assigned delivers nothing until Resume",
		check: func(s *scene) {
			tp := of(s.topic(1), 0)
			s.produce(tp, 5)
			m := s.open(tp.Topic)
			m.onAssigned = func([]driver.Assignment) { m.source.Pause([]driver.TopicPartition{tp}) }
			m.start()
			m.poll(100)
			s.holds(m, tp)
			s.stays(m, tp)
			s.gets(m, tp, 0, 0)
			m.source.Resume([]driver.TopicPartition{tp})
			s.gets(m, tp, 0, 5)
		},
	},
	{
		Name: "pause/ends", Says: "a pause ends with its assignment", needs: needTwo,
		check: func(s *scene) {
			topic := s.topic(2)
			one := s.start(topic)
			s.holds(one, of(topic, 0), of(topic, 1))
			one.source.Pause([]driver.TopicPartition{of(topic, 0), of(topic, 1)})
			two := s.start(topic)
			moved := s.splits(one, two, topic, 2)
			two.stop()
			s.holds(one, of(topic, 0), of(topic, 1))
			s.produce(moved, 3)
			s.gets(one, moved, 0, 3)
		},
	},
	{
		Name: "pause/not-owned", Says: "a pause of a partition that the member does not have does nothing, now and later", needs: needTwo,
		check: func(s *scene) {
			topic := s.topic(2)
			one := s.start(topic)
			s.holds(one, of(topic, 0), of(topic, 1))
			two := s.start(topic)
			moved := s.splits(one, two, topic, 2)
			one.source.Pause([]driver.TopicPartition{moved})
			one.source.Resume([]driver.TopicPartition{of("nobody's", 0)})
			two.stop()
			s.holds(one, of(topic, 0), of(topic, 1))
			s.produce(moved, 3)
			s.gets(one, moved, 0, 3)
		},
	},
}

// splits waits until two members have all partitions of a topic between them,
// each of them some, and returns one that the second has.
func (s *scene) splits(one, two *member, topic string, partitions int) driver.TopicPartition {
	s.await(two, "a share of the partitions", func() bool { return len(two.held) > 0 })
	s.await(one, "a share of the partitions", func() bool { return len(one.held) > 0 && len(one.held) < partitions })
	one.mu.Lock()
	ones := len(one.held)
	one.mu.Unlock()
	s.await(two, "all partitions between two members", func() bool { return ones+len(two.held) == partitions })
	one.mu.Lock()
	defer one.mu.Unlock()
	two.mu.Lock()
	defer two.mu.Unlock()
	for p := range int32(partitions) {
		tp := of(topic, p)
		s.want((one.held[tp] == nil) != (two.held[tp] == nil), "%v: the first member has it: %v, the second: %v", tp, one.held[tp] != nil, two.held[tp] != nil)
	}
	for tp := range two.held {
		return tp
	}
	s.failf("the second member has nothing")
	return driver.TopicPartition{}
}

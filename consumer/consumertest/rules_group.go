package consumertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncefence/oncefence/consumer/driver"
)

var groupRules = []Rule{
	{
		Name: "group/share", Says: "two members share the partitions, and a leaving member's move to the other, which goes on at the committed positions", needs: needTwo,
		check: func(s *scene) {
			const partitions = 4
			topic := s.topic(partitions)
			for p := range int32(partitions) {
				s.produce(of(topic, p), 5)
			}
			one := s.start(topic)
			for p := range int32(partitions) {
				s.gets(one, of(topic, p), 0, 5)
				s.commits(one, of(topic, p), 5, "")
			}
			two := s.start(topic)
			s.splits(one, two, topic, partitions)
			for p := range int32(partitions) {
				s.produce(of(topic, p), 5)
			}
			s.eachByOwner(one, two, topic, partitions)
			two.stop()
			s.await(one, "all partitions", func() bool { return len(one.held) == partitions })
			for p := range int32(partitions) {
				s.produce(of(topic, p), 5)
			}
			for p := range int32(partitions) {
				tp := of(topic, p)
				one.mu.Lock()
				from := max(int(one.last[tp].Committed), 0)
				one.mu.Unlock()
				s.gets(one, tp, from, 15)
			}
		},
	},
	{
		Name: "group/revoke-first", Says: "a partition is not assigned to another member before Revoked has returned; commits within Revoked count", needs: needTwo,
		check: func(s *scene) {
			topic := s.topic(2)
			s.produce(of(topic, 0), 4)
			s.produce(of(topic, 1), 4)
			one := s.open(topic)
			var moving []driver.TopicPartition
			entered, release := make(chan struct{}), make(chan struct{})
			one.onRevoked = func(ctx context.Context, tps []driver.TopicPartition) {
				one.onRevoked = nil
				moving = tps
				close(entered)
				select {
				case <-release:
				case <-ctx.Done():
				}
				for _, tp := range tps {
					if err := s.commit(one, tp, 3, "within revoked"); err != nil {
						one.breaks("commit within Revoked: %w", err)
					}
				}
			}
			one.start()
			one.poll(100)
			s.gets(one, of(topic, 0), 0, 4)
			s.gets(one, of(topic, 1), 0, 4)
			two := s.start(topic)
			s.reaches(entered, "Revoked")
			s.quiet()
			two.mu.Lock()
			for _, tp := range moving {
				if two.held[tp] != nil {
					two.against = append(two.against, fmt.Errorf("%v was assigned while the other member drained it", tp))
				}
			}
			two.mu.Unlock()
			close(release)
			moved := s.splits(one, two, topic, 2)
			s.gets(two, moved, 3, 4)
			two.mu.Lock()
			a := two.last[moved].Assignment
			two.mu.Unlock()
			s.want(a.Committed == 3 && a.Metadata == "within revoked", "the new owner is told a commit at %d with metadata %q", a.Committed, a.Metadata)
			err := s.commit(one, moved, 4, "late")
			s.wantNotOwned(err)
			s.wantCommitted("after a commit by the old owner", moved, 3, "within revoked")
		},
	},
	{
		Name: "group/after-revoked", Says: "after Revoked has returned a record of that assignment carries its generation, or does not come; what stays goes on without a gap", needs: needTwo,
		check: func(s *scene) {
			topic := s.topic(2)
			s.produce(of(topic, 0), 200)
			s.produce(of(topic, 1), 200)
			one := s.open(topic)
			one.start()
			one.poll(7)
			s.await(one, "some records", func() bool { return len(one.held) == 2 && len(one.last[of(topic, 0)].records) > 0 })
			two := s.start(topic)
			moved := s.splits(one, two, topic, 2)
			stays := of(topic, 1-moved.Partition)
			s.gets(one, stays, 0, 200)
			s.gets(two, moved, 0, 200)
			two.stop()
			s.holds(one, moved, stays)
			// Nothing was committed: the new assignment begins at the beginning.
			s.gets(one, moved, 0, 200)
		},
	},
	{
		Name: "group/twice", Says: "partitions that go to and fro are delivered without a hole each time, from the committed position on", needs: needTwo,
		check: func(s *scene) {
			topic := s.topic(2)
			one := s.start(topic)
			s.holds(one, of(topic, 0), of(topic, 1))
			for range 3 {
				s.produce(of(topic, 0), 10)
				s.produce(of(topic, 1), 10)
				two := s.start(topic)
				moved := s.splits(one, two, topic, 2)
				two.mu.Lock()
				from := int(two.last[moved].Committed)
				two.mu.Unlock()
				s.gets(two, moved, from, s.next[moved])
				s.commits(two, moved, int64(s.next[moved]), "")
				two.stop()
				s.holds(one, of(topic, 0), of(topic, 1))
			}
		},
	},
}

// eachByOwner wants the second five records of each partition with its owner.
func (s *scene) eachByOwner(one, two *member, topic string, partitions int) {
	for p := range int32(partitions) {
		tp := of(topic, p)
		one.mu.Lock()
		mine := one.held[tp] != nil
		one.mu.Unlock()
		if mine {
			s.gets(one, tp, 0, 10)
		} else {
			s.gets(two, tp, 5, 10)
		}
	}
}

func (s *scene) wantNotOwned(err error) {
	s.want(errors.Is(err, driver.ErrNotOwned), "the commit says %v, want ErrNotOwned", err)
}

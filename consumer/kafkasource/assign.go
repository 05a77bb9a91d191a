package kafkasource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
)

// commit is a committed position as the coordinator keeps it.
type commit struct {
	offset   int64
	metadata string
}

// onOffsetsFetched keeps the commit metadata for onAssigned, which kgo calls
// next, on the same goroutine.
func (s *source) onOffsetsFetched(_ context.Context, _ *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
	s.fetched = map[driver.TopicPartition]commit{}
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			name := t.Topic
			if name == "" {
				name = s.nameOf(t.TopicID)
			}
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 || p.Offset < 0 {
					continue
				}
				c := commit{offset: p.Offset}
				if p.Metadata != nil {
					c.metadata = *p.Metadata
				}
				s.fetched[driver.TopicPartition{Topic: name, Partition: p.Partition}] = c
			}
		}
	}
	return nil
}

func (s *source) nameOf(id [16]byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, facts := range s.known {
		if facts.id == id {
			return name
		}
	}
	return ""
}

// onAssigned is called between the fetch of committed positions and the first
// fetch of records. What it returns is where reading begins; an error ends the
// session with the group, which is then joined again.
func (s *source) onAssigned(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	s.refresh(ctx, offsets)
	as, missing := s.assignments(offsets)
	firsts, err := s.firsts(ctx, missing)
	if err != nil {
		return nil, fmt.Errorf("first positions: %w", err)
	}
	for tp, at := range firsts {
		offsets[tp.Topic][tp.Partition] = kgo.NewOffset().At(at)
	}
	s.give(as, func(tp driver.TopicPartition) int64 {
		return offsets[tp.Topic][tp.Partition].EpochOffset().Offset
	})
	return offsets, nil
}

// refresh asks for partition counts and topic ids. What cannot be had stays as
// it was.
func (s *source) refresh(ctx context.Context, offsets map[string]map[int32]kgo.Offset) {
	names := make([]string, 0, len(offsets))
	for name := range offsets {
		names = append(names, name)
	}
	if len(names) == 0 {
		return
	}
	details, err := s.admin.ListTopics(ctx, names...)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, d := range details {
		if facts := s.known[name]; facts != nil && d.Err == nil {
			facts.learn(d)
		}
	}
}

// assignments describes the partitions and returns those without a commit.
func (s *source) assignments(offsets map[string]map[int32]kgo.Offset) (as []driver.Assignment, missing []driver.TopicPartition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, partitions := range offsets {
		facts := s.known[topic]
		if facts == nil {
			continue // nobody asked for it
		}
		for partition := range partitions {
			a := driver.Assignment{
				TopicPartition: driver.TopicPartition{Topic: topic, Partition: partition},
				TopicID:        facts.id,
				Committed:      -1,
				Partitions:     facts.partitions,
			}
			if c, ok := s.fetched[a.TopicPartition]; ok {
				a.Committed, a.Metadata = c.offset, c.metadata
			} else {
				missing = append(missing, a.TopicPartition)
			}
			as = append(as, a)
		}
	}
	slices.SortFunc(as, func(a, b driver.Assignment) int { return compare(a.TopicPartition, b.TopicPartition) })
	slices.SortFunc(missing, compare)
	return as, missing
}

func compare(a, b driver.TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// firsts finds and commits first positions.
func (s *source) firsts(ctx context.Context, tps []driver.TopicPartition) (map[driver.TopicPartition]int64, error) {
	if len(tps) == 0 {
		return nil, nil
	}
	var early, late []string
	atEnd := map[driver.TopicPartition]bool{}
	s.mu.Lock()
	for _, tp := range tps {
		facts := s.known[tp.Topic]
		_, begun := facts.begun[tp.Partition]
		atEnd[tp] = s.options.Start == Latest && facts.adopt && tp.Partition < facts.first && !begun
		if atEnd[tp] {
			late = append(late, tp.Topic)
		} else {
			early = append(early, tp.Topic)
		}
	}
	s.mu.Unlock()
	starts, err := list(ctx, s.admin.ListStartOffsets, early)
	if err != nil {
		return nil, err
	}
	ends, err := list(ctx, s.admin.ListCommittedOffsets, late)
	if err != nil {
		return nil, err
	}
	firsts := map[driver.TopicPartition]int64{}
	commits := make([]driver.Offset, 0, len(tps))
	for _, tp := range tps {
		listed := starts
		if atEnd[tp] {
			listed = ends
		}
		o, ok := listed.Lookup(tp.Topic, tp.Partition)
		switch {
		case !ok:
			return nil, fmt.Errorf("topic %s partition %d is not listed", tp.Topic, tp.Partition)
		case o.Err != nil:
			return nil, fmt.Errorf("topic %s partition %d: %w", tp.Topic, tp.Partition, o.Err)
		}
		firsts[tp] = o.Offset
		commits = append(commits, driver.Offset{TopicPartition: tp, Offset: o.Offset, LeaderEpoch: -1})
	}
	for _, err := range s.send(ctx, commits) {
		if err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tp := range tps {
		s.known[tp.Topic].begun[tp.Partition] = struct{}{}
	}
	return firsts, nil
}

// list lists offsets of topics, of none without asking.
func list(ctx context.Context, do func(context.Context, ...string) (kadm.ListedOffsets, error), topics []string) (kadm.ListedOffsets, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	slices.Sort(topics)
	return do(ctx, slices.Compact(topics)...)
}

// give makes partitions the member's and tells the handler. A partition that
// it has already, because its topic was made anew, is lost first.
func (s *source) give(as []driver.Assignment, at func(driver.TopicPartition) int64) {
	if len(as) == 0 {
		return
	}
	s.handling.Lock()
	defer s.handling.Unlock()
	var gone []driver.TopicPartition
	s.mu.Lock()
	s.unreleased = time.Time{}
	for i, a := range as {
		if s.holdings[a.TopicPartition] != nil {
			gone = append(gone, a.TopicPartition)
		}
		s.generation++
		as[i].Generation = s.generation
	}
	s.mu.Unlock()
	if len(gone) > 0 {
		s.handler.Lost(gone)
		s.drop(gone)
	}
	s.mu.Lock()
	for _, a := range as {
		s.holdings[a.TopicPartition] = &holding{
			TopicPartition: a.TopicPartition,
			generation:     a.Generation,
			topicID:        a.TopicID,
			next:           at(a.TopicPartition),
			heard:          time.Now(),
			high:           -1,
			stable:         -1,
		}
	}
	s.client.ResumeFetchPartitions(partitionMap(named(as)))
	s.mu.Unlock()
	s.handler.Assigned(as)
}

func named(as []driver.Assignment) []driver.TopicPartition {
	tps := make([]driver.TopicPartition, len(as))
	for i, a := range as {
		tps[i] = a.TopicPartition
	}
	return tps
}

package kafkasource

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
)

// onRevoked is called by kgo when partitions move and when the member leaves;
// kgo has stopped fetching them and dropped what it had buffered. The group
// waits until it returns.
func (s *source) onRevoked(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	tps := s.held(partitions)
	if len(tps) == 0 {
		return
	}
	s.handling.Lock()
	defer s.handling.Unlock()
	if s.isDead() {
		s.handler.Lost(tps)
		s.drop(tps)
		return
	}
	ctx, cancel := context.WithTimeout(s.life, s.rebalanceTimeout*3/4)
	defer cancel()
	s.handler.Revoked(ctx, tps)
	s.drop(tps)
}

// onLost is called by kgo when the member was thrown out.
func (s *source) onLost(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	tps := s.held(partitions)
	if len(tps) == 0 {
		return
	}
	s.handling.Lock()
	defer s.handling.Unlock()
	s.handler.Lost(tps)
	s.drop(tps)
}

// held returns those of the partitions that the handler was given.
func (s *source) held(partitions map[string][]int32) []driver.TopicPartition {
	s.mu.Lock()
	defer s.mu.Unlock()
	var tps []driver.TopicPartition
	for topic, ps := range partitions {
		for _, p := range ps {
			tp := driver.TopicPartition{Topic: topic, Partition: p}
			if s.holdings[tp] != nil {
				tps = append(tps, tp)
			}
		}
	}
	slices.SortFunc(tps, compare)
	return tps
}

// drop ends assignments: pauses end, commits are refused from here on, and one
// that is on its way is waited for, so that it cannot land under the next
// generation of the group, over the new owner's.
func (s *source) drop(tps []driver.TopicPartition) {
	s.mu.Lock()
	for _, tp := range tps {
		delete(s.holdings, tp)
	}
	s.pending = slices.DeleteFunc(s.pending, func(b driver.Batch) bool { return slices.Contains(tps, b.TopicPartition) })
	s.client.ResumeFetchPartitions(partitionMap(tps))
	flight := s.flight
	s.mu.Unlock()
	if flight != nil && flight.concerns(tps) {
		flight.cancel()
		<-flight.done
	}
}

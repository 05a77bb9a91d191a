package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
)

// flight is a commit on its way.
type flight struct {
	offsets []driver.Offset
	cancel  context.CancelFunc
	done    chan struct{}
}

func (f *flight) concerns(tps []driver.TopicPartition) bool {
	return slices.ContainsFunc(f.offsets, func(o driver.Offset) bool { return slices.Contains(tps, o.TopicPartition) })
}

// Commit implements [driver.Source]. It waits while the group is between a join
// and the assignment that follows. Partitions that the member does not have are
// refused without asking the broker, which would take them.
func (s *source) Commit(ctx context.Context, offsets []driver.Offset) []error {
	errs := make([]error, len(offsets))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &flight{cancel: cancel, done: make(chan struct{})}
	defer close(f.done)
	places := make([]int, 0, len(offsets))

	s.mu.Lock()
	for i, o := range offsets {
		switch {
		case s.closed || !s.started:
			errs[i] = driver.ErrClosed
		case s.holdings[o.TopicPartition] == nil:
			errs[i] = fmt.Errorf("%s: %w", committing(o), driver.ErrNotOwned)
		case o.Offset < 0:
			errs[i] = fmt.Errorf("%s: positions are not negative", committing(o))
		default:
			f.offsets = append(f.offsets, o)
			places = append(places, i)
		}
	}
	s.flight = f
	s.mu.Unlock()

	if len(f.offsets) > 0 {
		for i, err := range s.send(ctx, f.offsets) {
			errs[places[i]] = err
		}
	}
	s.mu.Lock()
	s.flight = nil
	s.mu.Unlock()
	return errs
}

func committing(o driver.Offset) string {
	return fmt.Sprintf("commit of topic %s partition %d offset %d", o.Topic, o.Partition, o.Offset)
}

// send commits positions and answers one error for each.
func (s *source) send(ctx context.Context, offsets []driver.Offset) []error {
	asked := map[string]map[int32]kgo.EpochOffset{}
	for _, o := range offsets {
		if asked[o.Topic] == nil {
			asked[o.Topic] = map[int32]kgo.EpochOffset{}
		}
		asked[o.Topic][o.Partition] = kgo.EpochOffset{Epoch: o.LeaderEpoch, Offset: o.Offset}
	}
	answers := map[driver.TopicPartition]error{}
	var failed error
	ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error { return annotate(req, offsets) })
	s.client.CommitOffsetsSync(ctx, asked, func(_ *kgo.Client, req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if err != nil {
			failed = err
			return
		}
		read(req, resp, answers)
	})
	errs := make([]error, len(offsets))
	for i, o := range offsets {
		err, answered := answers[o.TopicPartition]
		switch {
		case failed != nil:
			err = failed
		case !answered:
			err = errors.New("the broker did not answer for it")
		}
		if err != nil {
			errs[i] = fmt.Errorf("%s: %w", committing(o), s.judge(err))
		}
	}
	return errs
}

// annotate puts the metadata in place of the client's own.
func annotate(req *kmsg.OffsetCommitRequest, offsets []driver.Offset) error {
	metadata := make(map[driver.TopicPartition]string, len(offsets))
	for _, o := range offsets {
		metadata[o.TopicPartition] = o.Metadata
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			m := metadata[driver.TopicPartition{Topic: t.Topic, Partition: t.Partitions[j].Partition}]
			t.Partitions[j].Metadata = &m
		}
	}
	return nil
}

// read collects each partition's own error. From version 10 on, topics are
// answered by id.
func read(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, answers map[driver.TopicPartition]error) {
	names := make(map[[16]byte]string, len(req.Topics))
	for _, t := range req.Topics {
		names[t.TopicID] = t.Topic
	}
	for _, t := range resp.Topics {
		name := t.Topic
		if name == "" {
			name = names[t.TopicID]
		}
		for _, p := range t.Partitions {
			answers[driver.TopicPartition{Topic: name, Partition: p.Partition}] = kerr.ErrorForCode(p.ErrorCode)
		}
	}
}

// judge says what a commit's error means for the loop. The generation moved
// on, the member is gone or another one has its name: the partition is not
// owned. All else may be tried again.
func (s *source) judge(err error) error {
	switch {
	case errors.Is(err, kgo.ErrClientClosed):
		return driver.ErrClosed
	case errors.Is(err, kerr.FencedInstanceID):
		s.die(err)
		return notOwned(err)
	case errors.Is(err, kerr.IllegalGeneration),
		errors.Is(err, kerr.UnknownMemberID),
		errors.Is(err, kerr.FencedMemberEpoch),
		errors.Is(err, kerr.UnknownTopicID): // of a topic that was made anew
		return notOwned(err)
	}
	return err
}

func notOwned(err error) error { return fmt.Errorf("%w: %w", driver.ErrNotOwned, err) }

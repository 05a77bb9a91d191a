package kafkasource

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
)

// ResetError is the error of a batch that says that a partition's position is
// not in the log any more: removed by retention, or truncated.
type ResetError struct {
	driver.TopicPartition
	// Position is what was to be read next.
	Position int64
	// Start and End are the log's, -1 if not known.
	Start, End int64
	// To is where the partition goes on, -1: it stands still. The jump is a new
	// assignment, whose generation the batch has, and its position is committed.
	To int64
}

// Error names the partition, the position, and what to do.
func (e *ResetError) Error() string {
	what := fmt.Sprintf("topic %s partition %d: position %d is not in the log any more", e.Topic, e.Partition, e.Position)
	if e.Start >= 0 && e.End >= 0 {
		what += fmt.Sprintf(", which is [%d, %d]", e.Start, e.End)
	}
	if e.To < 0 {
		return what + ": the partition stands still; set OnReset, or stop the group and commit another position"
	}
	return fmt.Sprintf("%s: goes on at %d", what, e.To)
}

// Skipped returns where the partition was and where it goes on, -1: nowhere.
func (e *ResetError) Skipped() (from, to int64) { return e.Position, e.To }

// resetTimeout bounds a reset, which keeps rebalances waiting.
const resetTimeout = 10 * time.Second

// truncated is called when the log was cut below the position. The client has
// gone to the place already.
func (s *source) truncated(h *holding, loss *kgo.ErrDataLoss) driver.Batch {
	e := &ResetError{TopicPartition: h.TopicPartition, Position: loss.ConsumedTo, Start: -1, End: -1, To: -1}
	if s.options.OnReset == Default {
		return s.stand(h, e)
	}
	return s.reset(h, e, kgo.EpochOffset{Epoch: loss.ResetToEpoch, Offset: loss.ResetTo})
}

// outOfRange is called when a broker said that the position is not in the log.
func (s *source) outOfRange(h *holding) driver.Batch {
	ctx, cancel := context.WithTimeout(s.life, resetTimeout)
	defer cancel()
	start, err := s.listOne(ctx, h, s.admin.ListStartOffsets)
	if err != nil {
		return s.fail(h, err)
	}
	end, err := s.listOne(ctx, h, s.admin.ListEndOffsets)
	if err != nil {
		return s.fail(h, err)
	}
	e := &ResetError{TopicPartition: h.TopicPartition, Position: h.next, Start: start, End: end, To: -1}
	switch s.options.OnReset {
	case Earliest:
		return s.reset(h, e, kgo.EpochOffset{Epoch: -1, Offset: start})
	case Latest:
		return s.reset(h, e, kgo.EpochOffset{Epoch: -1, Offset: end})
	case Default:
	}
	return s.fail(h, e)
}

func (s *source) listOne(ctx context.Context, h *holding, do listFunc) (int64, error) {
	listed, err := do(ctx, h.Topic)
	if err != nil {
		return 0, err
	}
	o, ok := listed.Lookup(h.Topic, h.Partition)
	if !ok {
		return 0, fmt.Errorf("the brokers list no offset for it")
	}
	return o.Offset, o.Err
}

// reset commits another position and gives the partition anew from there. It
// runs while rebalances wait, and before anything else is polled: SetOffsets
// drops what the client has buffered.
func (s *source) reset(h *holding, e *ResetError, to kgo.EpochOffset) driver.Batch {
	ctx, cancel := context.WithTimeout(s.life, resetTimeout)
	defer cancel()
	e.To = to.Offset
	commit := driver.Offset{TopicPartition: h.TopicPartition, Offset: to.Offset, LeaderEpoch: to.Epoch}
	if err := s.send(ctx, []driver.Offset{commit})[0]; err != nil {
		return s.fail(h, fmt.Errorf("reset to %d: %w", to.Offset, err))
	}
	s.mu.Lock()
	facts := s.known[h.Topic]
	a := driver.Assignment{
		TopicPartition: h.TopicPartition,
		TopicID:        facts.id,
		Committed:      to.Offset,
		Partitions:     facts.partitions,
	}
	s.mu.Unlock()
	s.give([]driver.Assignment{a}, func(driver.TopicPartition) int64 { return to.Offset })
	s.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{h.Topic: {h.Partition: to}})

	s.mu.Lock()
	defer s.mu.Unlock()
	if anew := s.holdings[h.TopicPartition]; anew != nil {
		h = anew
	}
	return h.errorBatch(e)
}

package memsource

import (
	"context"
	"fmt"

	"github.com/oncefence/oncefence/consumer/driver"
)

// maxMetadata is the longest commit metadata, as the driver has it.
const maxMetadata = 200

// Commit implements [driver.Source]. A partition that the member has not, or
// that was taken from it without its knowledge, answers an error that matches
// [driver.ErrNotOwned].
func (s *Source) Commit(ctx context.Context, offsets []driver.Offset) []error {
	errs := make([]error, len(offsets))
	faults := make([]Fault, len(offsets))
	if hook := s.options.OnCommit; hook != nil {
		for i, o := range offsets {
			faults[i] = hook(ctx, o)
		}
	}
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	for i, o := range offsets {
		if faults[i].Err == nil || faults[i].Applied {
			errs[i] = s.commit(ctx, o)
		}
		if faults[i].Err != nil {
			errs[i] = faults[i].Err
		}
	}
	if s.evicted && !s.closing {
		s.evicted = false
		s.rejoin()
	}
	return errs
}

func (s *Source) commit(ctx context.Context, o driver.Offset) error {
	if s.closed || !s.started {
		return driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	where := fmt.Sprintf("commit of topic %s partition %d offset %d", o.Topic, o.Partition, o.Offset)
	h := s.holding(o.TopicPartition)
	sl := s.group.slots[o.TopicPartition]
	switch {
	case h == nil || sl.owner != s || s.evicted:
		return fmt.Errorf("%s: %w", where, driver.ErrNotOwned)
	case o.Offset < 0 || o.Offset > h.log.next:
		return fmt.Errorf("%s: the log ends at %d", where, h.log.next)
	case len(o.Metadata) > maxMetadata:
		return fmt.Errorf("%s: %d bytes of metadata, at most %d", where, len(o.Metadata), maxMetadata)
	}
	s.group.committed[o.TopicPartition] = o
	return nil
}

// Lose throws the member out of its group, as the broker does with one that was
// not heard of: its partitions are gone at once, Lost is called, and it joins
// again.
func (s *Source) Lose() {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	if s.started && !s.closing {
		s.evicted = false // it learns of that as well
		s.group.leave(s)
		s.rejoin()
	}
}

// Evict throws the member out without its noticing: the others get its
// partitions while it goes on polling. It learns of it at its next commit,
// which is refused; then Lost is called and it joins again.
func (s *Source) Evict() {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	if s.started && !s.closing && !s.evicted {
		s.evicted = true
		s.group.leave(s)
	}
}

// rejoin drops what the member believes to have and joins its group again.
func (s *Source) rejoin() {
	gone := s.holdings
	s.holdings = nil
	known := gone[:0:0]
	for _, h := range gone {
		if h.told {
			known = append(known, h)
		}
	}
	if len(known) > 0 {
		s.push(event{kind: lost, holdings: known})
	}
	s.group.join(s)
	s.wakeUp()
}

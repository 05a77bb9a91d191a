package consumertest

import (
	"fmt"

	"github.com/oncefence/oncefence/consumer/driver"
)

// take notes the records of a poll and checks what always holds.
func (m *member) take(batches []driver.Batch, limit int) {
	if len(batches) == 0 {
		return
	}
	m.note(func() {
		total := 0
		for _, b := range batches {
			total += len(b.Records)
			if b.Err != nil {
				m.errs = append(m.errs, b.Err)
			}
			if err := m.batch(b); err != nil {
				m.against = append(m.against, fmt.Errorf("batch of %v, generation %d: %w", b.TopicPartition, b.Generation, err))
			}
		}
		if total > limit {
			m.against = append(m.against, fmt.Errorf("a poll with limit %d gave %d records", limit, total))
		}
	})
}

// batch files the records of one batch; mu is held.
func (m *member) batch(b driver.Batch) error {
	a := m.last[b.TopicPartition]
	switch {
	case a == nil:
		return fmt.Errorf("it was never assigned")
	case b.Generation > a.Generation:
		return fmt.Errorf("no assignment has it, the newest is %d", a.Generation)
	case b.Generation < a.Generation:
		return nil // of an assignment that has ended: to be dropped
	case !a.ready:
		return fmt.Errorf("Assigned has not returned yet")
	}
	for _, r := range b.Records {
		if r.Topic != b.Topic || r.Partition != b.Partition {
			return fmt.Errorf("it holds a record of topic %s partition %d", r.Topic, r.Partition)
		}
		if n := len(a.records); n > 0 && r.Offset <= a.records[n-1].Offset {
			return fmt.Errorf("offset %d comes after %d", r.Offset, a.records[n-1].Offset)
		}
		if r.TopicID != a.TopicID {
			return fmt.Errorf("offset %d has topic id %x, the assignment %x", r.Offset, r.TopicID, a.TopicID)
		}
		a.records = append(a.records, r)
	}
	if n := len(b.Records); n > 0 {
		last := b.Records[n-1].Offset
		switch {
		case b.NextFetch <= last:
			return fmt.Errorf("the next fetch is at %d, the last record at %d", b.NextFetch, last)
		case b.HighWatermark >= 0 && b.HighWatermark <= last:
			return fmt.Errorf("the high watermark is %d, the last record at %d", b.HighWatermark, last)
		case b.LastStable >= 0 && b.LastStable <= last:
			return fmt.Errorf("the last stable offset is %d, the last record at %d", b.LastStable, last)
		}
	}
	if b.NextFetch < a.next {
		return fmt.Errorf("the next fetch is at %d and was at %d", b.NextFetch, a.next)
	}
	a.next = b.NextFetch
	return nil
}

// epoch returns the leader epoch of a record that was delivered, -1 if it was
// not.
func (m *member) epoch(tp driver.TopicPartition, offset int64) int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.last[tp]; a != nil {
		for _, r := range a.records {
			if r.Offset == offset {
				return r.LeaderEpoch
			}
		}
	}
	return -1
}

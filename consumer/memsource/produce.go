package memsource

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Produce writes records in order and returns them with the partition, offset
// and timestamp that they got. A record with a key goes to the partition that
// its bytes hash to, one with a nil key to the topic's next in turn. The record's
// Partition is not looked at: see [Broker.ProduceTo]. It stops at the first
// error; what it returns is written.
func (b *Broker) Produce(records ...driver.Record) ([]driver.Record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.wakeAll()
	written := make([]driver.Record, 0, len(records))
	for _, r := range records {
		t, err := b.find(r.Topic)
		if err == nil {
			r, err = t.append(t.place(r.Key), r)
		}
		if err != nil {
			return written, err
		}
		written = append(written, r)
	}
	return written, nil
}

// ProduceTo writes records to one partition; their Topic and Partition are not
// looked at.
func (b *Broker) ProduceTo(tp driver.TopicPartition, records ...driver.Record) ([]driver.Record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.wakeAll()
	if _, err := b.find(tp.Topic); err != nil {
		return nil, err
	}
	if _, err := b.partition(tp); err != nil {
		return nil, err
	}
	written := make([]driver.Record, 0, len(records))
	for _, r := range records {
		r, err := b.topics[tp.Topic].append(tp.Partition, r)
		if err != nil {
			return written, err
		}
		written = append(written, r)
	}
	return written, nil
}

// place returns the partition for a key.
func (t *topic) place(key []byte) int32 {
	n := len(t.partitions)
	if key == nil {
		t.turn++
		return int32((t.turn - 1) % n)
	}
	h := fnv.New32a()
	h.Write(key)
	return int32(h.Sum32() % uint32(n))
}

// Records returns what a topic holds, by partition and offset, records of open
// transactions included.
func (b *Broker) Records(name string) []driver.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []driver.Record
	if t := b.topics[name]; t != nil {
		for _, p := range t.partitions {
			all = append(all, p.records...)
		}
	}
	return all
}

// HighWatermark returns the offset that the partition's next record gets, -1 if
// there is no such partition.
func (b *Broker) HighWatermark(tp driver.TopicPartition) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.partition(tp)
	if err != nil {
		return -1
	}
	return p.next
}

// Skip uses up n offsets without a record, as transaction markers, aborted
// records and compaction do.
func (b *Broker) Skip(tp driver.TopicPartition, n int64) error {
	return b.change(tp, func(p *partition) error {
		if n < 1 {
			return fmt.Errorf("cannot skip %d offsets: use 1 or more", n)
		}
		p.next += n
		return nil
	})
}

// Open begins a transaction: records that are written from here on are not
// delivered until [Broker.End].
func (b *Broker) Open(tp driver.TopicPartition) error {
	return b.change(tp, func(p *partition) error {
		if p.stable >= 0 {
			return fmt.Errorf("a transaction is open since offset %d", p.stable)
		}
		p.stable = p.next
		return nil
	})
}

// End ends the open transaction with a marker. When it aborts, the records
// written since [Broker.Open] are gone and their offsets stay unused.
func (b *Broker) End(tp driver.TopicPartition, commit bool) error {
	return b.change(tp, func(p *partition) error {
		if p.stable < 0 {
			return fmt.Errorf("no transaction is open")
		}
		if !commit {
			p.records = slices.Clone(p.records[:p.index(p.stable)])
		}
		p.stable = -1
		p.next++
		return nil
	})
}

// Trim removes records below offset, as retention does.
func (b *Broker) Trim(tp driver.TopicPartition, offset int64) error {
	return b.change(tp, func(p *partition) error {
		if offset < p.start || offset > p.next {
			return fmt.Errorf("cannot trim to %d, the log is [%d, %d]", offset, p.start, p.next)
		}
		p.start = offset
		p.records = slices.Clone(p.records[p.index(offset):])
		return nil
	})
}

// Truncate removes records at offset and above, as an unclean leader election
// does; the offsets are given out again, under the next leader epoch.
func (b *Broker) Truncate(tp driver.TopicPartition, offset int64) error {
	return b.change(tp, func(p *partition) error {
		if offset < p.start || offset > p.next {
			return fmt.Errorf("cannot truncate to %d, the log is [%d, %d]", offset, p.start, p.next)
		}
		p.cuts = append(p.cuts, offset)
		p.next = offset
		p.records = slices.Clone(p.records[:p.index(offset)])
		if p.stable > offset {
			p.stable = -1
		}
		return nil
	})
}

// change applies a change to a partition and lets sources look.
func (b *Broker) change(tp driver.TopicPartition, do func(*partition) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.wakeAll()
	p, err := b.partition(tp)
	if err != nil {
		return err
	}
	if err := do(p); err != nil {
		return fmt.Errorf("topic %s partition %d: %w", tp.Topic, tp.Partition, err)
	}
	return nil
}

package memsource

import (
	"fmt"
	"slices"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

type topic struct {
	name       string
	id         [16]byte
	options    TopicOptions
	partitions []*partition
	turn       int // of records without a key
}

// partition is a log. Offsets below start are gone, offsets without a record
// are never delivered, offsets at stable and above wait for a transaction.
type partition struct {
	records []driver.Record
	start   int64
	next    int64 // high watermark
	stable  int64 // last stable offset; -1: no open transaction
	// cuts[e] is where the log of leader epoch e was truncated; len(cuts) is
	// the epoch of today.
	cuts []int64
}

func newPartition() *partition { return &partition{stable: -1} }

func (p *partition) lastStable() int64 {
	if p.stable >= 0 {
		return p.stable
	}
	return p.next
}

// index returns the place of the first record at or above offset.
func (p *partition) index(offset int64) int {
	i, _ := slices.BinarySearchFunc(p.records, offset, func(r driver.Record, o int64) int {
		switch {
		case r.Offset < o:
			return -1
		case r.Offset > o:
			return 1
		}
		return 0
	})
	return i
}

// read returns at most limit records from offset on and where to go on.
func (p *partition) read(offset int64, limit int) ([]driver.Record, int64) {
	end := p.lastStable()
	from, to := p.index(offset), p.index(end)
	if to-from <= limit {
		return p.records[from:to:to], max(offset, end)
	}
	to = from + limit
	return p.records[from:to:to], p.records[to-1].Offset + 1
}

// diverged returns where a reader at offset, whose last record was of epoch,
// parted from the log. An unknown epoch (-1) is never told apart.
func (p *partition) diverged(offset int64, epoch int32) (int64, bool) {
	at, found := offset, false
	for e := epoch; e >= 0 && int(e) < len(p.cuts); e++ {
		if p.cuts[e] < at {
			at, found = p.cuts[e], true
		}
	}
	return at, found
}

// size is what TopicOptions.MaxBytes limits.
func size(r driver.Record) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// append writes a record and returns it as it is in the log.
func (t *topic) append(number int32, r driver.Record) (driver.Record, error) {
	if n := size(r); t.options.MaxBytes > 0 && n > t.options.MaxBytes {
		return r, fmt.Errorf("topic %s takes %d bytes, the record has %d: %w", t.name, t.options.MaxBytes, n, driver.ErrTooLarge)
	}
	p := t.partitions[number]
	r.Topic, r.Partition, r.Offset = t.name, number, p.next
	r.LeaderEpoch, r.TopicID = int32(len(p.cuts)), t.id
	r.Key, r.Value = slices.Clone(r.Key), slices.Clone(r.Value)
	r.Headers = slices.Clone(r.Headers)
	for i := range r.Headers {
		r.Headers[i].Value = slices.Clone(r.Headers[i].Value)
	}
	r.AppendTime = t.options.AppendTime
	if r.AppendTime || r.Timestamp.IsZero() {
		r.Timestamp = time.Now()
	}
	// As a broker keeps it: milliseconds, and no monotonic reading.
	r.Timestamp = r.Timestamp.Round(0).Truncate(time.Millisecond)
	p.records = append(p.records, r)
	p.next++
	return r, nil
}

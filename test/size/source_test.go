// Package size holds the tests of what the loop costs: round trips to the
// store, memory, allocations.
package size

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

const (
	topic     = "orders"
	group     = "size"
	valueSize = 200
	customers = 1000
)

// generator is a source that makes its records when they are polled and keeps
// none of them. All its partitions belong to its one member.
type generator struct {
	partitions int
	total      int // records, in all partitions; then it has no more

	mu      sync.Mutex
	made    int
	next    []int64 // offset, by partition
	paused  []bool
	turn    int
	commits []int64
	changed chan struct{}
	value   []byte
}

func newGenerator(partitions, total int) *generator {
	return &generator{
		partitions: partitions, total: total, next: make([]int64, partitions), paused: make([]bool, partitions),
		commits: make([]int64, partitions), changed: make(chan struct{}, 1), value: make([]byte, valueSize),
	}
}

func (g *generator) Info() driver.Info {
	return driver.Info{System: "generated", Group: group, Topics: []string{topic}, Retention: time.Hour}
}

func (g *generator) Start(_ context.Context, _ []driver.Subscription, h driver.Handler) error {
	as := make([]driver.Assignment, g.partitions)
	for p := range as {
		as[p] = driver.Assignment{TopicPartition: tp(int32(p)), Generation: 1, Partitions: int32(g.partitions)}
	}
	h.Assigned(as)
	return nil
}

func tp(partition int32) driver.TopicPartition {
	return driver.TopicPartition{Topic: topic, Partition: partition}
}

// Poll returns records of the partitions that are not paused, in turn.
func (g *generator) Poll(ctx context.Context, limit int) ([]driver.Batch, error) {
	for {
		if batches := g.poll(limit); len(batches) > 0 {
			return batches, nil
		}
		select {
		case <-g.changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (g *generator) poll(limit int) (batches []driver.Batch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Few partitions a poll, as a fetch has them, and some records of each.
	const perPartition = 128
	for range g.partitions {
		p := g.turn % g.partitions
		n := min(limit, perPartition, g.total-g.made)
		if n == 0 {
			break
		}
		g.turn++
		if g.paused[p] {
			continue
		}
		batches = append(batches, g.make(int32(p), n))
		g.made += n
		limit -= n
	}
	return batches
}

// make makes n records, in a few allocations for all of them. Customers stay in
// their partition.
func (g *generator) make(partition int32, n int) driver.Batch {
	records := make([]driver.Record, n)
	headers := make([]driver.Header, n)
	text := make([]byte, 0, n*(valueSize+32))
	for i := range records {
		offset := g.next[partition]
		g.next[partition]++
		at := len(text)
		text = append(text, g.value...)
		value := text[at:len(text):len(text)]
		at = len(text)
		text = strconv.AppendInt(append(text, "id-"...), offset*int64(g.partitions)+int64(partition), 10)
		id := text[at:len(text):len(text)]
		at = len(text)
		text = strconv.AppendInt(append(text, 'c'), offset%customers, 10)
		headers[i] = driver.Header{Key: "idempotency-key", Value: id}
		records[i] = driver.Record{
			Topic: topic, Partition: partition, Offset: offset, LeaderEpoch: -1,
			Key: text[at:len(text):len(text)], Value: value, Headers: headers[i : i+1 : i+1],
		}
	}
	end := g.next[partition]
	return driver.Batch{TopicPartition: tp(partition), Generation: 1, Records: records, HighWatermark: end, LastStable: end, NextFetch: end}
}

func (g *generator) Commit(_ context.Context, offsets []driver.Offset) []error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, o := range offsets {
		g.commits[o.Partition] = o.Offset
	}
	return make([]error, len(offsets))
}

// committed returns a partition's committed position.
func (g *generator) committed(partition int) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.commits[partition]
}

// delivered returns how many records of a partition were polled.
func (g *generator) delivered(partition int) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.next[partition]
}

func (g *generator) Pause(partitions []driver.TopicPartition)  { g.pause(partitions, true) }
func (g *generator) Resume(partitions []driver.TopicPartition) { g.pause(partitions, false) }

func (g *generator) pause(partitions []driver.TopicPartition, paused bool) {
	g.mu.Lock()
	for _, p := range partitions {
		g.paused[p.Partition] = paused
	}
	g.mu.Unlock()
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

func (g *generator) Close(context.Context) error { return nil }

// nowhere is a producer for records that never come: nothing here is retried.
type nowhere struct{}

func (nowhere) Ensure(context.Context, []driver.TopicSpec) error { return nil }
func (nowhere) Produce(_ context.Context, records []driver.Record) []error {
	return make([]error, len(records))
}
func (nowhere) Close(context.Context) error { return nil }

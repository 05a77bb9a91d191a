package consumer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"
)

// ErrNotRunning is what Ready and Healthy say before Run and after it.
var ErrNotRunning = errors.New("the consumer is not running")

// health is the loop's state as Ready and Healthy see it.
type health struct {
	at        time.Time
	storeDown time.Time
	stopping  bool
	assigned  int
	stuck     []stuck
}

type stuck struct {
	topic     string
	partition int32
	offset    int64 // -1: no record, the partition itself
	since     time.Time
	why       string
}

// stalled is the age from which a snapshot says that the loop itself is stuck.
const stalled = 10 * time.Second

// gauges takes the snapshot and reports it.
func (l *loop) gauges(now time.Time) {
	g := Gauges{InFlight: l.open, Held: l.held, InDoubt: len(l.doubts), StoreDownSince: l.storeDown, SkippedOffsets: l.skipped}
	_, g.Running = l.pool.load()
	g.Running += l.transacting()
	for _, first := range l.doubts {
		g.OldestInDoubt = max(g.OldestInDoubt, now.Sub(first))
	}
	h := &health{at: now, storeDown: l.storeDown, stopping: l.stopping, assigned: len(l.parts)}
	g.Partitions = make([]PartitionGauges, 0, len(l.parts))
	for _, p := range l.parts {
		g.Partitions = append(g.Partitions, PartitionGauges{
			TopicPartition: p.TopicPartition, Committed: p.committed, Mark: p.mark, Lag: p.lag(), InFlight: p.open, Paused: p.paused || l.allPaused,
		})
		if s, ok := l.stuckPartition(p, now); ok {
			h.stuck = append(h.stuck, s)
		}
	}
	l.snapshot.Store(h)
	l.opts.Observer.Gauges(g)
}

func (l *loop) stuckPartition(p *partition, now time.Time) (stuck, bool) {
	s := stuck{topic: p.Topic, partition: p.Partition, offset: -1, since: p.headSince}
	if p.fetchErr != nil {
		s.since, s.why = now, "cannot fetch: "+p.fetchErr.Error()
		return s, true
	}
	it := p.oldest()
	if it == nil {
		if p.lastStable >= 0 && p.highWater > p.lastStable && p.nextFetch >= p.lastStable && now.Sub(p.stableAt) >= l.opts.StuckAfter {
			s.offset, s.since, s.why = p.lastStable, p.stableAt, "blocked by an open transaction"
			return s, true
		}
		return s, false
	}
	if it.stage == stageWaitDue || now.Sub(p.headSince) < l.opts.StuckAfter {
		return s, false
	}
	s.offset, s.why = it.rec.Offset, l.waitsFor(it).String()
	if it.cause != nil {
		s.why += ": " + errorText(it.cause)
	}
	return s, true
}

// waitsFor is an item's stage as a person sees it: a key that another process
// holds is also asked for again and again, and the loop does not know when a
// worker starts.
func (l *loop) waitsFor(it *item) stage {
	if it.held {
		return stageHeld
	}
	if it.stage == stageRunQ {
		for _, c := range l.pool.running(nil) {
			if slices.Contains(c.items, it) {
				return stageRunning
			}
		}
	}
	return it.stage
}

var stageNames = [...]string{
	"new", "waits for its due time", "waits for its lane", "waits for its key", "waits for a claim", "waits for the answer to a claim",
	"its key is held by another process", "waits to run alone", "waits for its lane", "waits for its turn", "waits for a worker", "its effect runs",
	"waits until the sink may be asked", "waits for the fence store", "waits for the fence store", "waits for the fence store", "waits for the producer",
	"waits for the producer", "waits to be tried again", "settled", "dropped",
}

// String says what an item waits for.
func (s stage) String() string { return stageNames[s] }

// Healthy returns nil while the consumer makes progress, else what it waits
// for, everything in one error: the fence store down since when, each partition
// that stands at an offset for longer than Options.StuckAfter and why, a
// partition that an open transaction blocks, or a loop that does not run. It
// does not block and asks no server.
func (c *Consumer) Healthy() error {
	h, err := c.health()
	if err != nil {
		return err
	}
	var wrong *multierror.Error
	if !h.storeDown.IsZero() {
		wrong = multierror.Append(wrong, fmt.Errorf("the fence store does not answer since %s", h.storeDown.UTC().Format(time.RFC3339)))
	}
	for _, s := range h.stuck {
		at := ""
		if s.offset >= 0 {
			at = fmt.Sprintf(" at offset %d", s.offset)
		}
		wrong = multierror.Append(wrong, fmt.Errorf("%s partition %d stands%s since %s: %s", s.topic, s.partition, at, s.since.UTC().Format(time.RFC3339), s.why))
	}
	return wrong.ErrorOrNil()
}

// Ready returns nil when the consumer has partitions and its fence store
// answers, else why not. A member that the group gave no partition is not
// ready.
func (c *Consumer) Ready() error {
	h, err := c.health()
	switch {
	case err != nil:
		return err
	case h.stopping:
		return errors.New("the consumer is stopping")
	case !h.storeDown.IsZero():
		return fmt.Errorf("the fence store does not answer since %s", h.storeDown.UTC().Format(time.RFC3339))
	case h.assigned == 0:
		return errors.New("no partition is assigned to this member yet")
	}
	return nil
}

func (c *Consumer) health() (*health, error) {
	l := c.loop.Load()
	if l == nil {
		return nil, ErrNotRunning
	}
	h := l.snapshot.Load()
	if h == nil {
		return nil, ErrNotRunning
	}
	select {
	case <-l.over:
		return nil, ErrNotRunning
	default:
	}
	if age := time.Since(h.at); age > stalled {
		return nil, fmt.Errorf("the loop does not run since %v", age.Round(time.Second))
	}
	return h, nil
}

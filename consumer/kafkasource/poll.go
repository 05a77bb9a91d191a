package kafkasource

import (
	"context"
	"errors"

	"github.com/oncefence/oncefence/consumer/driver"
)

// polling is a call of the client's poll, which does not end with its context
// while a rebalance is going on. What comes of it after Poll has given up is
// for the next Poll.
type polling struct {
	done    chan struct{}
	batches []driver.Batch
	err     error
}

// errPollEnded says that the context of the client's poll has ended.
var errPollEnded = errors.New("poll ended")

// Poll implements [driver.Source]. Partitions of a broker take turns as the
// client has it. It answers ctx's error when ctx ends and [driver.ErrClosed]
// once Close was called. No records come while Handler.Revoked runs.
func (s *source) Poll(ctx context.Context, limit int) ([]driver.Batch, error) {
	limit = max(limit, 1)
	for {
		if err := s.over(); err != nil {
			return nil, err
		}
		if batches := s.take(limit); len(batches) > 0 {
			return batches, nil
		}
		if s.polling == nil {
			s.polling = s.poll(ctx, limit)
		}
		select {
		case <-s.polling.done:
			p := s.polling
			s.polling = nil
			s.put(p.batches)
			switch {
			case len(p.batches) == 0 && ctx.Err() != nil:
				return nil, ctx.Err()
			case p.err == nil || errors.Is(p.err, errPollEnded):
				continue // with what was put, or with a context that has not ended
			}
			if err := s.over(); err != nil {
				return nil, err
			}
			return s.take(limit), p.err
		case <-s.awake:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.fatal:
		case <-s.life.Done():
		}
	}
}

// over says why there is nothing to come any more.
func (s *source) over() error {
	s.mu.Lock()
	closing, started := s.closing, s.started
	s.mu.Unlock()
	if closing || !started {
		return driver.ErrClosed
	}
	select {
	case <-s.fatal:
		return s.fatalErr
	default:
		return nil
	}
}

// poll asks the client for records, gives them their generations, and lets
// rebalances go on again. In between none can begin: a record cannot be taken
// for one of a later assignment.
func (s *source) poll(ctx context.Context, limit int) *polling {
	p := &polling{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer s.client.AllowRebalance()
		p.batches, p.err = s.convert(s.client.PollRecords(ctx, limit))
	}()
	return p
}

// put keeps batches for take.
func (s *source) put(batches []driver.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, batches...)
}

// take returns at most limit records of what is pending. Batches of paused
// partitions stay, those of assignments that have ended are dropped.
func (s *source) take(limit int) []driver.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return nil
	}
	var out, rest []driver.Batch
	for _, b := range s.pending {
		h := s.holdings[b.TopicPartition]
		switch n := len(b.Records); {
		case h == nil || h.generation != b.Generation:
		case h.paused, n > 0 && limit <= 0:
			rest = append(rest, b)
		case n <= limit:
			limit -= n
			out = append(out, b)
		default:
			head, tail := b, b
			head.Records, tail.Records = b.Records[:limit:limit], b.Records[limit:]
			head.NextFetch = tail.Records[0].Offset
			limit = 0
			out, rest = append(out, head), append(rest, tail)
		}
	}
	s.pending = rest
	return out
}

package memsource

import (
	"context"
	"slices"

	"github.com/oncefence/oncefence/consumer/driver"
)

// holding is one assignment of a partition to a member.
type holding struct {
	driver.TopicPartition
	generation uint64
	log        *partition
	position   int64
	epoch      int32 // of the last record before position
	told       bool  // Assigned was called, or is about to be
	ready      bool  // Assigned has returned
	draining   bool  // Revoked was asked for
	paused     bool
	said       watermarks // what Poll told last
	standing   bool       // a ResetError was told
}

type eventKind int8

const (
	assigned eventKind = iota
	revoked
	lost
	closed
)

// event is a call of the handler that is due.
type event struct {
	kind     eventKind
	holdings []*holding
	ctx      context.Context // of closed
}

func (s *Source) push(e event) {
	s.events = append(s.events, e)
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// assign gives partitions to the member; the handler hears of it later.
func (s *Source) assign(tps []driver.TopicPartition) {
	e := event{kind: assigned}
	for _, tp := range tps {
		s.group.generation++
		log, _ := s.broker.partition(tp)
		h := &holding{TopicPartition: tp, generation: s.group.generation, log: log}
		s.holdings = append(s.holdings, h)
		e.holdings = append(e.holdings, h)
	}
	s.push(e)
}

// revoke stops delivery; the partitions are free when the handler has returned.
func (s *Source) revoke(tps []driver.TopicPartition) {
	e := event{kind: revoked}
	for _, tp := range tps {
		if h := s.holding(tp); h != nil {
			h.draining = true
			e.holdings = append(e.holdings, h)
		}
	}
	s.push(e)
}

// drop takes holdings away.
func (s *Source) drop(gone []*holding) {
	s.holdings = slices.DeleteFunc(s.holdings, func(h *holding) bool { return slices.Contains(gone, h) })
}

func (s *Source) holding(tp driver.TopicPartition) *holding {
	for _, h := range s.holdings {
		if h.TopicPartition == tp {
			return h
		}
	}
	return nil
}

// run calls the handler, one call at a time, until the source is closed.
func (s *Source) run() {
	defer close(s.stopped)
	for {
		select {
		case <-s.bell:
		case <-s.stop.Done():
			return
		}
		for {
			s.broker.mu.Lock()
			if s.closed || len(s.events) == 0 {
				s.broker.mu.Unlock()
				break
			}
			e := s.events[0]
			s.events = s.events[1:]
			s.broker.mu.Unlock()
			if s.handle(e) {
				return
			}
		}
	}
}

// handle makes one call and says whether it was the last.
func (s *Source) handle(e event) bool {
	b := s.broker
	switch e.kind {
	case assigned:
		b.mu.Lock()
		as := s.begin(e.holdings)
		b.mu.Unlock()
		if len(as) > 0 {
			s.handler.Assigned(as)
		}
		b.mu.Lock()
		for _, h := range e.holdings {
			h.ready = true
		}
		s.wakeUp()
		b.mu.Unlock()
	case revoked:
		ctx, cancel := context.WithTimeout(s.stop, s.options.RebalanceTimeout)
		s.handRevoked(ctx, e.holdings)
		cancel()
		b.mu.Lock()
		s.release(e.holdings)
		s.group.balance()
		b.mu.Unlock()
	case lost:
		s.handler.Lost(names(e.holdings))
	case closed:
		b.mu.Lock()
		var rest []*holding
		for _, h := range s.holdings {
			h.draining = true
			if h.told {
				rest = append(rest, h)
			}
		}
		b.mu.Unlock()
		ctx, cancel := context.WithTimeout(e.ctx, s.options.RebalanceTimeout)
		defer cancel()
		s.handRevoked(ctx, rest)
		b.mu.Lock()
		defer b.mu.Unlock()
		s.finish()
		return true
	}
	return false
}

// handRevoked calls Revoked for the holdings that the member still has and that
// the handler knows of.
func (s *Source) handRevoked(ctx context.Context, hs []*holding) {
	s.broker.mu.Lock()
	hs = slices.DeleteFunc(slices.Clone(hs), func(h *holding) bool {
		return !h.told || !slices.Contains(s.holdings, h)
	})
	s.broker.mu.Unlock()
	if len(hs) > 0 {
		s.handler.Revoked(ctx, names(hs))
	}
}

// release frees partitions that the handler has let go.
func (s *Source) release(hs []*holding) {
	for _, h := range hs {
		if !slices.Contains(s.holdings, h) {
			continue // lost in the meantime
		}
		if sl := s.group.slots[h.TopicPartition]; sl.owner == s {
			sl.owner, sl.revoking = nil, false
		}
	}
	s.drop(hs)
}

// begin finds the first position of assignments that the member still has, and
// commits it where the group has none.
func (s *Source) begin(hs []*holding) []driver.Assignment {
	var as []driver.Assignment
	for _, h := range hs {
		if !slices.Contains(s.holdings, h) {
			continue
		}
		t := s.broker.topics[h.Topic]
		a := driver.Assignment{
			TopicPartition: h.TopicPartition,
			Generation:     h.generation,
			TopicID:        t.id,
			Committed:      -1,
			Partitions:     int32(len(t.partitions)),
		}
		if o, ok := s.group.committed[h.TopicPartition]; ok {
			a.Committed, a.Metadata = o.Offset, o.Metadata
			h.position, h.epoch = o.Offset, o.LeaderEpoch
		} else {
			h.position, h.epoch = s.first(h), -1
			s.group.committed[h.TopicPartition] = driver.Offset{
				TopicPartition: h.TopicPartition, Offset: h.position, LeaderEpoch: -1,
			}
		}
		h.told = true
		as = append(as, a)
	}
	return as
}

// first is where a partition begins without a commit.
func (s *Source) first(h *holding) int64 {
	own := slices.Contains(s.topics, h.Topic)
	added := int(h.Partition) >= s.group.known[h.Topic]
	if s.options.Start == Latest && own && !added {
		return h.log.next
	}
	return h.log.start
}

func names(hs []*holding) []driver.TopicPartition {
	tps := make([]driver.TopicPartition, len(hs))
	for i, h := range hs {
		tps[i] = h.TopicPartition
	}
	return tps
}

package fencetest

import (
	"context"
	"sync"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// bend breaks one rule of a store. Its functions may change what they get.
type bend struct {
	// claim and apply decide; nil is the driver's Decide.
	claim func(c *driver.Claim, found *driver.Record, now int64, token func(uint64) uint64) (*driver.Record, driver.Claimed)
	apply func(t *driver.Transition, found *driver.Record, now int64) (*driver.Record, driver.Applied)
	// purges says what a purge removes; nil is what expired.
	purges func(r *driver.Record, now int64) bool
	// token makes a token; nil counts.
	token func(prev uint64) uint64
	// wrap puts something before the store.
	wrap func(driver.Store) driver.Store
}

func (b bend) open() driver.Store {
	s := &bent{bend: b, records: map[string]map[driver.Digest]*driver.Record{}, markers: map[string]driver.Marker{}}
	if s.bend.claim == nil {
		s.bend.claim = (*driver.Claim).Decide
	}
	if s.bend.apply == nil {
		s.bend.apply = (*driver.Transition).Decide
	}
	if s.bend.purges == nil {
		s.bend.purges = (*driver.Record).Expired
	}
	if s.bend.token == nil {
		s.bend.token = func(prev uint64) uint64 { s.tokens = max(s.tokens, prev) + 1; return s.tokens }
	}
	if b.wrap != nil {
		return b.wrap(s)
	}
	return s
}

// bent is a store that is right but for its bend. Records are kept packed.
type bent struct {
	bend    bend
	mu      sync.Mutex
	records map[string]map[driver.Digest]*driver.Record
	markers map[string]driver.Marker
	tokens  uint64
	closed  bool
}

func (s *bent) enter(ctx context.Context, namespace string) (map[driver.Digest]*driver.Record, int64, error) {
	s.mu.Lock()
	if s.closed {
		return nil, 0, driver.ErrClosed
	}
	if s.records[namespace] == nil {
		s.records[namespace] = map[driver.Digest]*driver.Record{}
	}
	return s.records[namespace], driver.Micros(time.Now()), ctx.Err()
}

// repacked shares nothing with r.
func repacked(r *driver.Record) *driver.Record {
	if r == nil {
		return nil
	}
	out, err := driver.ParseRecord(driver.AppendRecord(nil, r))
	if err != nil {
		panic(err)
	}
	return &out
}

func (s *bent) Claim(ctx context.Context, namespace string, claims []driver.Claim) []driver.Claimed {
	records, now, err := s.enter(ctx, namespace)
	defer s.mu.Unlock()
	out := make([]driver.Claimed, len(claims))
	for i, c := range claims {
		if out[i].Err = err; err != nil {
			continue
		}
		next, answer := s.bend.claim(&c, repacked(records[c.Key]), now, s.bend.token)
		if next != nil {
			records[c.Key] = repacked(next)
		}
		answer.Record = *repacked(&answer.Record)
		out[i] = answer
	}
	return out
}

func (s *bent) Apply(ctx context.Context, namespace string, transitions []driver.Transition) []driver.Applied {
	records, now, err := s.enter(ctx, namespace)
	defer s.mu.Unlock()
	out := make([]driver.Applied, len(transitions))
	for i, t := range transitions {
		if out[i].Err = err; err != nil {
			continue
		}
		next, answer := s.bend.apply(&t, repacked(records[t.Key]), now)
		if next != nil {
			records[t.Key] = repacked(next)
		}
		answer.Record = *repacked(&answer.Record)
		out[i] = answer
	}
	return out
}

func (s *bent) Get(ctx context.Context, namespace string, keys []driver.Digest) ([]driver.Record, error) {
	records, now, err := s.enter(ctx, namespace)
	defer s.mu.Unlock()
	out := make([]driver.Record, len(keys))
	for i, key := range keys {
		if r := records[key]; err == nil && r != nil && !r.Expired(now) {
			out[i] = *repacked(r)
		}
	}
	return out, err
}

func (s *bent) Scan(ctx context.Context, namespace string, filter driver.Filter, yield func(driver.Digest, driver.Record) bool) error {
	records, now, err := s.enter(ctx, namespace)
	shown := map[driver.Digest]driver.Record{}
	for key, r := range records {
		if filter.Match(r, now) {
			shown[key] = *repacked(r)
		}
	}
	s.mu.Unlock()
	for key, r := range shown {
		if err != nil || !yield(key, r) {
			break
		}
	}
	return err
}

func (s *bent) Purge(ctx context.Context, namespace string, limit int) (int, error) {
	records, now, err := s.enter(ctx, namespace)
	defer s.mu.Unlock()
	removed := 0
	for key, r := range records {
		if err == nil && removed < limit && s.bend.purges(r, now) {
			delete(records, key)
			removed++
		}
	}
	return removed, err
}

func (s *bent) Marker(ctx context.Context, namespace string, update driver.Marker) (driver.Marker, error) {
	_, now, err := s.enter(ctx, namespace)
	defer s.mu.Unlock()
	if err != nil {
		return driver.Marker{}, err
	}
	s.markers[namespace] = s.markers[namespace].Merge(update)
	answer := s.markers[namespace].Merge(driver.Marker{})
	answer.Now = now
	return answer, nil
}

func (s *bent) Grade(ctx context.Context) (driver.Grade, error) {
	_, _, err := s.enter(ctx, "")
	defer s.mu.Unlock()
	return driver.Grade{Level: driver.GradeVolatile, Detail: "a test's memory"}, err
}

func (s *bent) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

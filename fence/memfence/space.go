package memfence

import (
	"context"
	"sync"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// space is one namespace. Stored records are never changed, only replaced.
type space struct {
	mu      sync.Mutex
	records map[driver.Digest]*driver.Record
	marker  driver.Marker
	tokens  uint64
}

func now() int64 { return driver.Micros(time.Now()) }

// token makes a fencing token above prev and above all made before.
func (s *space) token(prev uint64) uint64 {
	s.tokens = max(s.tokens, prev) + 1
	return s.tokens
}

func (s *space) claim(claims []driver.Claim, out []driver.Claimed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := now()
	for i := range claims {
		next, answer := claims[i].Decide(s.records[claims[i].Key], at, s.token)
		s.put(claims[i].Key, next)
		answer.Record = clone(&answer.Record)
		out[i] = answer
	}
}

func (s *space) apply(transitions []driver.Transition, out []driver.Applied) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := now()
	for i := range transitions {
		next, answer := transitions[i].Decide(s.records[transitions[i].Key], at)
		s.put(transitions[i].Key, next)
		answer.Record = clone(&answer.Record)
		out[i] = answer
	}
}

func (s *space) put(key driver.Digest, next *driver.Record) {
	if next != nil {
		kept := clone(next)
		s.records[key] = &kept
	}
}

func (s *space) get(keys []driver.Digest) []driver.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, at := make([]driver.Record, len(keys)), now()
	for i, key := range keys {
		if r := s.records[key]; r != nil && !r.Expired(at) {
			out[i] = clone(r)
		}
	}
	return out
}

func (s *space) scan(ctx context.Context, filter driver.Filter, yield func(driver.Digest, driver.Record) bool) error {
	type row struct {
		key    driver.Digest
		record *driver.Record
	}
	var rows []row
	s.mu.Lock()
	at := now()
	for key, r := range s.records {
		if filter.Match(r, at) {
			rows = append(rows, row{key, r})
		}
	}
	s.mu.Unlock()
	for _, row := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !yield(row.key, clone(row.record)) {
			return nil
		}
	}
	return nil
}

func (s *space) purge(limit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, removed := now(), 0
	for key, r := range s.records {
		if removed >= limit {
			break
		}
		if r.Expired(at) {
			delete(s.records, key)
			removed++
		}
	}
	return removed
}

// merge keeps the result of Merge, which shares no map with update.
func (s *space) merge(update driver.Marker) driver.Marker {
	s.mu.Lock()
	defer s.mu.Unlock()
	update.Now = 0
	s.marker = s.marker.Merge(update)
	answer := s.marker.Merge(driver.Marker{})
	answer.Now = now()
	return answer
}

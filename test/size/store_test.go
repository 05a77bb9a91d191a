package size

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// forgetful is a store that grants every claim, writes everything and remembers
// nothing, as far away as the real one but in this process.
type forgetful struct {
	tokens atomic.Uint64
	mu     sync.Mutex
	marker driver.Marker
	// claims and seals count what went through.
	claims, seals, renewals atomic.Int64
}

func (s *forgetful) Claim(_ context.Context, _ string, claims []driver.Claim) []driver.Claimed {
	now := driver.Micros(time.Now())
	out := make([]driver.Claimed, len(claims))
	for i := range claims {
		c := &claims[i]
		out[i] = driver.Claimed{Answer: driver.New, Now: now, Record: driver.Record{
			State: driver.Pending, Kind: c.Kind, Token: s.tokens.Add(1), Attempt: c.Attempt, Step: c.Step, Fingerprint: c.Fingerprint,
			Nonce: c.Nonce, LeaseEnd: now + c.Lease.Microseconds(), FirstSeen: now, Origin: c.Origin,
		}}
	}
	s.claims.Add(int64(len(claims)))
	return out
}

func (s *forgetful) Apply(_ context.Context, _ string, transitions []driver.Transition) []driver.Applied {
	now := driver.Micros(time.Now())
	out := make([]driver.Applied, len(transitions))
	for i := range out {
		switch transitions[i].Op {
		case driver.Seal:
			s.seals.Add(1)
		case driver.Renew:
			s.renewals.Add(1)
		default:
		}
		out[i] = driver.Applied{Outcome: driver.OK, Now: now}
	}
	return out
}

func (s *forgetful) Get(_ context.Context, _ string, keys []driver.Digest) ([]driver.Record, error) {
	return make([]driver.Record, len(keys)), nil
}

func (s *forgetful) Scan(context.Context, string, driver.Filter, func(driver.Digest, driver.Record) bool) error {
	return nil
}

func (s *forgetful) Purge(context.Context, string, int) (int, error) { return 0, nil }

func (s *forgetful) Marker(_ context.Context, _ string, update driver.Marker) (driver.Marker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marker = s.marker.Merge(update)
	m := s.marker
	m.Now = driver.Micros(time.Now())
	return m, nil
}

func (s *forgetful) Grade(context.Context) (driver.Grade, error) {
	return driver.Grade{Level: driver.GradeRestart, Detail: "remembers nothing"}, nil
}

func (s *forgetful) Close() error { return nil }

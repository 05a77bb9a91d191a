package memfence

import (
	"context"
	"sync"

	"github.com/oncefence/oncefence/fence/driver"
)

// Store is a driver.Store over maps. Make it with [NewStore]. A batch is one
// atomic step; batches of different namespaces do not wait for each other.
type Store struct {
	mu     sync.RWMutex
	spaces map[string]*space
	closed bool
}

var _ driver.Store = (*Store)(nil)

// NewStore makes an empty store.
func NewStore(*Options) *Store {
	return &Store{spaces: map[string]*space{}}
}

// Claim implements driver.Store.
func (s *Store) Claim(ctx context.Context, namespace string, claims []driver.Claim) []driver.Claimed {
	out := make([]driver.Claimed, len(claims))
	space, err := s.space(ctx, namespace)
	if err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	space.claim(claims, out)
	return out
}

// Apply implements driver.Store.
func (s *Store) Apply(ctx context.Context, namespace string, transitions []driver.Transition) []driver.Applied {
	out := make([]driver.Applied, len(transitions))
	space, err := s.space(ctx, namespace)
	if err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	space.apply(transitions, out)
	return out
}

// Get implements driver.Store.
func (s *Store) Get(ctx context.Context, namespace string, keys []driver.Digest) ([]driver.Record, error) {
	space, err := s.space(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return space.get(keys), nil
}

// Scan implements driver.Store. yield may call the store.
func (s *Store) Scan(ctx context.Context, namespace string, filter driver.Filter, yield func(driver.Digest, driver.Record) bool) error {
	space, err := s.space(ctx, namespace)
	if err != nil {
		return err
	}
	return space.scan(ctx, filter, yield)
}

// Purge implements driver.Store.
func (s *Store) Purge(ctx context.Context, namespace string, limit int) (int, error) {
	space, err := s.space(ctx, namespace)
	if err != nil {
		return 0, err
	}
	return space.purge(limit), nil
}

// Marker implements driver.Store.
func (s *Store) Marker(ctx context.Context, namespace string, update driver.Marker) (driver.Marker, error) {
	space, err := s.space(ctx, namespace)
	if err != nil {
		return driver.Marker{}, err
	}
	return space.merge(update), nil
}

// Grade implements driver.Store: always volatile.
func (s *Store) Grade(ctx context.Context) (driver.Grade, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grade{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return driver.Grade{}, driver.ErrClosed
	}
	return driver.Grade{Level: driver.GradeVolatile, Detail: "memory of this process"}, nil
}

// Close implements driver.Store. It forgets all records. Calls that are
// running finish.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.spaces = true, nil
	return nil
}

// space finds or makes the namespace's records. Nothing is done for a context
// that has ended.
func (s *Store) space(ctx context.Context, namespace string) (*space, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	found, closed := s.spaces[namespace], s.closed
	s.mu.RUnlock()
	switch {
	case closed:
		return nil, driver.ErrClosed
	case found != nil:
		return found, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, driver.ErrClosed
	}
	if found = s.spaces[namespace]; found == nil {
		found = &space{records: map[driver.Digest]*driver.Record{}}
		s.spaces[namespace] = found
	}
	return found, nil
}

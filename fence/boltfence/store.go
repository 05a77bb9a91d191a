package boltfence

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/oncefence/oncefence/fence/driver"
)

// Store is a driver.Store in one file. Make it with [OpenStore].
type Store struct {
	path     string
	db       *bbolt.DB
	commitTx func(*bbolt.Tx) error

	mu     sync.Mutex
	wake   sync.Cond // on mu: something waits, or closed
	urgent []*job    // renewals
	queue  []*job
	closed bool
	broken error // nothing more is answered

	written chan struct{} // closed when the writer has ended
	pack    []byte        // the writer's own
}

var _ driver.Store = (*Store)(nil)

// OpenStore opens the file at path as a store, see [Open].
func OpenStore(path string, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	db, err := openFile(path, opts)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, db: db, commitTx: (*bbolt.Tx).Commit, written: make(chan struct{})}
	s.wake.L = &s.mu
	go s.writeLoop()
	return s, nil
}

// Close implements driver.Store. It waits for batches that wait or run, and
// lets the file go.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.wake.Broadcast()
	s.mu.Unlock()
	<-s.written
	return s.db.Close()
}

// usable says why nothing is answered. s.mu is held.
func (s *Store) usable() error {
	if s.closed {
		return driver.ErrClosed
	}
	return s.broken
}

// check is usable for those who do not hold s.mu, after ctx and namespace.
func (s *Store) check(ctx context.Context, namespace string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := checkNamespace(namespace); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usable()
}

// Claim implements driver.Store.
func (s *Store) Claim(ctx context.Context, namespace string, claims []driver.Claim) []driver.Claimed {
	out := make([]driver.Claimed, len(claims))
	if len(claims) == 0 {
		return out
	}
	order := sorted(len(claims), func(i int) *driver.Digest { return &claims[i].Key })
	err := s.apply(ctx, namespace, len(claims), false, func(space *space) error {
		for _, i := range order {
			found, err := space.get(&claims[i].Key)
			if err != nil {
				out[i] = driver.Claimed{Err: err, Now: space.t.now}
				continue
			}
			next, answer := claims[i].Decide(found, space.t.now, space.token)
			if next != nil {
				if err := space.put(&claims[i].Key, found, next); err != nil {
					return err
				}
			}
			out[i] = answer
		}
		return nil
	})
	if err != nil {
		for i := range out {
			out[i] = driver.Claimed{Err: err}
		}
	}
	return out
}

// Apply implements driver.Store. A batch made only of renewals goes before
// other batches that wait.
func (s *Store) Apply(ctx context.Context, namespace string, transitions []driver.Transition) []driver.Applied {
	out := make([]driver.Applied, len(transitions))
	if len(transitions) == 0 {
		return out
	}
	order := sorted(len(transitions), func(i int) *driver.Digest { return &transitions[i].Key })
	renewals := !slices.ContainsFunc(transitions, func(t driver.Transition) bool { return t.Op != driver.Renew })
	err := s.apply(ctx, namespace, len(transitions), renewals, func(space *space) error {
		for _, i := range order {
			found, err := space.get(&transitions[i].Key)
			if err != nil {
				out[i] = driver.Applied{Err: err, Now: space.t.now}
				continue
			}
			next, answer := transitions[i].Decide(found, space.t.now)
			if next != nil {
				if err := space.put(&transitions[i].Key, found, next); err != nil {
					return err
				}
			}
			out[i] = answer
		}
		return nil
	})
	if err != nil {
		for i := range out {
			out[i] = driver.Applied{Err: err}
		}
	}
	return out
}

func (s *Store) apply(ctx context.Context, namespace string, items int, urgent bool, run func(*space) error) error {
	if err := checkNamespace(namespace); err != nil {
		return err
	}
	return s.write(ctx, items, urgent, func(t *transaction) error { return run(t.space(namespace)) })
}

// sorted is the order of a batch by key: neighbours in the file are met
// together.
func sorted(n int, key func(i int) *driver.Digest) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(key(a)[:], key(b)[:]) })
	return order
}

package redisfence

import (
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
)

// Store is a driver.Store on Redis.
type Store struct {
	client   redis.UniversalClient
	renewals redis.UniversalClient
	own      bool // renewals was opened here
	byBucket bool // one script must keep to one bucket
	buckets  int
	replicas int
	timeout  time.Duration
	closed   atomic.Bool
}

var _ driver.Store = (*Store)(nil)

// call is a call of a script, confirmed where the options want that.
func (s *Store) call(client redis.UniversalClient, sc *script, confirm bool) call {
	c := call{client: client, script: sc}
	if confirm {
		c.replicas, c.timeout = s.replicas, s.timeout
	}
	return c
}

// check refuses calls after Close and namespaces that make no key.
func (s *Store) check(namespace string) error {
	if s.closed.Load() {
		return driver.ErrClosed
	}
	return checkNamespace(namespace)
}

// Close implements driver.Store: it closes the connection for renewals and
// leaves the user's client open.
func (s *Store) Close() error {
	if s.closed.Swap(true) || !s.own {
		return nil
	}
	return s.renewals.Close()
}

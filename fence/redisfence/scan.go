package redisfence

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
)

// scanCount bounds the keys that the server looks at in one step.
const scanCount = 500

var errStop = errors.New("the caller has seen enough")

// Scan implements driver.Store. It walks the whole keyspace of every master in
// small steps, whatever the namespace holds: it is for people and repairs, not
// for the way of a record.
func (s *Store) Scan(ctx context.Context, namespace string, filter driver.Filter, yield func(driver.Digest, driver.Record) bool) error {
	if err := s.check(namespace); err != nil {
		return err
	}
	var mu sync.Mutex // masters are walked side by side
	seen := make(map[driver.Digest]bool)
	stopped := false
	err := s.eachMaster(ctx, func(ctx context.Context, master redis.Cmdable) error {
		for cursor := uint64(0); ; {
			names, next, err := master.ScanType(ctx, cursor, keyPattern(namespace), scanCount, "string").Result()
			if err != nil {
				return fmt.Errorf("scan: %w", err)
			}
			mu.Lock()
			if !stopped {
				stopped, err = s.show(ctx, namespace, names, seen, filter, yield)
			}
			over := stopped
			mu.Unlock()
			if err != nil || over || next == 0 {
				return err
			}
			cursor = next
		}
	})
	return err
}

// eachMaster calls visit for the one server, or for every master of a cluster.
func (s *Store) eachMaster(ctx context.Context, visit func(context.Context, redis.Cmdable) error) error {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error { return visit(ctx, master) })
	}
	return visit(ctx, s.client)
}

// show reads the records of the keys that SCAN named and yields them, none
// twice. It reports whether the caller wants no more.
func (s *Store) show(ctx context.Context, namespace string, names []string, seen map[driver.Digest]bool, filter driver.Filter, yield func(driver.Digest, driver.Record) bool) (stop bool, err error) {
	var keys []driver.Digest
	for _, name := range names {
		if d, ok := s.parseKey(namespace, name); ok && !seen[d] {
			seen[d] = true
			keys = append(keys, d)
		}
	}
	err = s.read(ctx, namespace, keys, func(i int, now int64, r *driver.Record, err error) error {
		if err != nil {
			return err
		}
		if r != nil && filter.Match(r, now) && !yield(keys[i], *r) {
			return errStop
		}
		return nil
	})
	if errors.Is(err, errStop) {
		return true, nil
	}
	return false, err
}

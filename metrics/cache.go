package metrics

import (
	"maps"
	"sync"
	"sync/atomic"
)

// cache keeps what was made for a key, so that finding it again costs one look
// into a map and no lock. Keys come from closed sets: it only grows to those.
type cache[K comparable, V any] struct {
	made  atomic.Pointer[map[K]V]
	mu    sync.Mutex // of those who add
	build func(K) V
}

func newCache[K comparable, V any](build func(K) V) *cache[K, V] {
	c := &cache[K, V]{build: build}
	c.made.Store(&map[K]V{})
	return c
}

func (c *cache[K, V]) get(k K) V {
	if v, ok := (*c.made.Load())[k]; ok {
		return v
	}
	return c.add(k)
}

func (c *cache[K, V]) add(k K) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := *c.made.Load()
	if v, ok := old[k]; ok {
		return v
	}
	next := maps.Clone(old)
	v := c.build(k)
	next[k] = v
	c.made.Store(&next)
	return v
}

package redisfence

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
)

// DefaultWaitTimeout is how long replicas may take to confirm.
const DefaultWaitTimeout = time.Second

// maxHops bounds how often a script follows a slot from node to node.
const maxHops = 3

// confirms reports whether what a transition writes must outlive a failover
// before the delivery goes on: what settles it, and a resolution.
func confirms(op driver.Op) bool {
	return op == driver.Seal || op == driver.HandOver || op == driver.Bury || op == driver.Resolve
}

// confirm sends each node its scripts and, behind them on the same connection,
// WAIT: that connection's last write is what replicas must confirm.
func (c call) confirm(ctx context.Context, cmds []redis.Cmder, chunks []*chunk) {
	cluster, ok := c.client.(*redis.ClusterClient)
	if !ok {
		c.sendAndWait(ctx, c.client, cmds, chunks, false)
		return
	}
	byNode := make(map[*redis.Client][]int)
	for i, k := range chunks {
		node, err := cluster.MasterForKey(ctx, k.keys[0])
		if err != nil {
			cmds[i].SetErr(err)
			continue
		}
		byNode[node] = append(byNode[node], i)
	}
	var wg sync.WaitGroup
	for node, items := range byNode {
		wg.Go(func() {
			c.sendAndWait(ctx, node, pickItems(cmds, items), pickItems(chunks, items), false)
		})
	}
	wg.Wait()
	for i := range cmds {
		c.follow(ctx, cluster, cmds[i:i+1], chunks[i:i+1])
	}
}

func pickItems[T any](from []T, items []int) []T {
	out := make([]T, len(items))
	for i, at := range items {
		out[i] = from[at]
	}
	return out
}

// follow sends one script on to where its slot has gone.
func (c call) follow(ctx context.Context, cluster *redis.ClusterClient, cmd []redis.Cmder, k []*chunk) {
	for range maxHops {
		addr, moved := redis.IsMovedError(cmd[0].Err())
		asked := false
		if !moved {
			if addr, asked = redis.IsAskError(cmd[0].Err()); !asked {
				return
			}
		}
		cluster.ReloadState(ctx)
		var mu sync.Mutex
		var node *redis.Client
		// An error here leaves node nil, and the command its own.
		_ = cluster.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
			if master.Options().Addr == addr {
				mu.Lock()
				defer mu.Unlock()
				node = master
			}
			return nil
		})
		if node == nil {
			return
		}
		c.sendAndWait(ctx, node, cmd, k, asked)
	}
}

// sendAndWait sends scripts to one node and marks the chunks that its replicas
// did not confirm in time.
func (c call) sendAndWait(ctx context.Context, node redis.Cmdable, cmds []redis.Cmder, chunks []*chunk, asking bool) {
	pipe := node.Pipeline()
	for _, cmd := range cmds {
		if asking {
			_ = pipe.Process(ctx, redis.NewStatusCmd(ctx, "asking")) // queues
		}
		_ = pipe.Process(ctx, cmd) // queues
	}
	wait := redis.NewIntCmd(ctx, "wait", c.replicas, max(c.timeout.Milliseconds(), 1)) // 0 would be without end
	_ = pipe.Process(ctx, wait)                                                        // queues
	_, _ = pipe.Exec(ctx)                                                              // each command keeps its error
	var short error
	if n, err := wait.Result(); err != nil {
		short = fmt.Errorf("unknown whether replicas have it: %w", err)
	} else if int(n) < c.replicas {
		short = fmt.Errorf("%d of %d replicas confirmed within %v: unknown whether it outlives a failover", n, c.replicas, c.timeout)
	}
	for _, k := range chunks {
		k.short = short
	}
}

package redisfence_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/test/servers"
)

// slots of a cluster.
const slots = 16384

// cluster is three masters on loopback ports, each with a third of the slots.
type cluster struct {
	addrs []string
	nodes []*redis.Client
}

// startCluster starts a cluster of redis-server programs that ends with the
// test.
func startCluster(tb testing.TB) *cluster {
	tb.Helper()
	return startNodes(tb, 3)
}

// startNodes starts a cluster; those beyond the third are the replicas of the
// first ones.
func startNodes(tb testing.TB, count int) *cluster {
	tb.Helper()
	c := &cluster{}
	var bus []string
	for range count {
		port := freePort(tb)
		args := []string{"--cluster-enabled", "yes", "--cluster-port", port, "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0"}
		server := servers.OwnRedis(tb, &servers.RedisOptions{From: servers.Program, Args: args})
		c.addrs = append(c.addrs, server.Addr())
		c.nodes = append(c.nodes, connect(tb, server.URL()))
		bus = append(bus, port)
	}
	ctx := tb.Context()
	for i, node := range c.nodes {
		if i < 3 {
			if err := node.ClusterAddSlotsRange(ctx, slots*i/3, slots*(i+1)/3-1).Err(); err != nil {
				tb.Fatal(err)
			}
		}
		host, port, err := net.SplitHostPort(c.addrs[i])
		if err != nil {
			tb.Fatal(err)
		}
		if err := c.nodes[0].Do(ctx, "cluster", "meet", host, port, bus[i]).Err(); err != nil {
			tb.Fatal(err)
		}
	}
	for _, node := range c.nodes {
		eventually(tb, "the cluster agrees", func() error {
			info, err := node.ClusterInfo(ctx).Result()
			if err == nil && !(strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", count))) {
				err = fmt.Errorf("it says: %s", info)
			}
			return err
		})
	}
	for i := 3; i < count; i++ {
		id := c.nodes[i-3].ClusterMyID(ctx).Val()
		eventually(tb, "a node is a replica", func() error { return c.nodes[i].ClusterReplicate(ctx, id).Err() })
		eventually(tb, "the replica has the data", func() error {
			if n := c.nodes[i-3].Wait(ctx, 1, 100*time.Millisecond).Val(); n != 1 {
				return fmt.Errorf("%d replicas answer", n)
			}
			return nil
		})
	}
	return c
}

func (c *cluster) client(tb testing.TB) *redis.ClusterClient {
	tb.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.addrs})
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

func freePort(tb testing.TB) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// eventually asks every 20 ms, for at most 20 s, until ok answers nil.
func eventually(tb testing.TB, what string, ok func() error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("%s: not within 20 s: %v", what, err)
		case <-tick.C:
		}
	}
}

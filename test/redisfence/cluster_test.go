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
	c := &cluster{}
	var bus []string
	for range 3 {
		port := freePort(tb)
		args := []string{"--cluster-enabled", "yes", "--cluster-port", port, "--cluster-node-timeout", "2000"}
		server := servers.OwnRedis(tb, &servers.RedisOptions{From: servers.Program, Args: args})
		c.addrs = append(c.addrs, server.Addr())
		c.nodes = append(c.nodes, connect(tb, server.URL()))
		bus = append(bus, port)
	}
	ctx := tb.Context()
	for i, node := range c.nodes {
		if err := node.ClusterAddSlotsRange(ctx, slots*i/3, slots*(i+1)/3-1).Err(); err != nil {
			tb.Fatal(err)
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
			if err == nil && !(strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")) {
				err = fmt.Errorf("it says: %s", info)
			}
			return err
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

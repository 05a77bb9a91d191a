package redisfence_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/test/servers"
)

// TestMemory measures what a sealed record costs, all included: 200,000 of
// them with a 20-byte effect id, no receipt, a 14-day end, on one node.
func TestMemory(t *testing.T) {
	const records, limit = 200_000, 300
	client := connect(t, servers.OwnRedis(t, &servers.RedisOptions{Args: []string{"--appendonly", "no"}}).URL())
	store := open(t, client, nil)
	fill := func(from, n uint64) {
		for start := from; start < from+n; start += 5_000 {
			if err := fencedPairs(t.Context(), store, batchKeys(start, 5_000), start); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(1<<40, 5_000) // connections, buffers and scripts are not the records'
	before := settledMemory(t, client)
	fill(0, records)
	each := float64(settledMemory(t, client)-before) / records
	t.Logf("%.0f bytes a record over %d records", each, records)
	if each > limit {
		t.Errorf("a sealed record costs %.0f bytes, want at most %d", each, limit)
	}
}

// settledMemory is used_memory once the server has moved its tables.
func settledMemory(t *testing.T, client *redis.Client) int64 {
	t.Helper()
	last, same := int64(-1), 0
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for range 200 {
		<-tick.C
		info := client.InfoMap(t.Context(), "memory").Item("Memory", "used_memory")
		var now int64
		for _, d := range info {
			now = now*10 + int64(d-'0')
		}
		if near(now, last) {
			if same++; same == 4 {
				return now
			}
		} else {
			same = 0
		}
		last = now
	}
	t.Fatal("used_memory does not settle")
	return 0
}

func near(a, b int64) bool { return max(a, b)-min(a, b) < 16<<10 }

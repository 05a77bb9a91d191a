package redisfence_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/test/servers"
)

// BenchmarkPairs measures claim and seal together, 512 a batch, on one
// connection, against the bare recipe: SET NX pending and SET done:<effect id>,
// pipelined by hand. The two take turns on the same server, every 8 batches, so
// that their ratio means something; cpu-ratio is the same from the processor
// time of client and server, for a machine that others use as well. ns/op is
// the fence's for one record.
func BenchmarkPairs(b *testing.B) {
	client := connect(b, servers.OwnRedis(b, &servers.RedisOptions{Args: []string{"--appendonly", "no"}}).URL())
	store := open(b, client, nil)
	ctx := b.Context()
	var bare, fenced cost
	for start := 0; start < b.N; start += 8 * 512 {
		n := min(8*512, b.N-start)
		batches := func(do func(context.Context, []driver.Digest, uint64) error) func() {
			return func() {
				for at := 0; at < n; at += 512 {
					if err := do(ctx, batchKeys(uint64(start+at), min(512, n-at)), uint64(start+at)); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		bare.measure(b, client, batches(func(ctx context.Context, keys []driver.Digest, _ uint64) error { return barePairs(ctx, client, keys) }))
		fenced.measure(b, client, batches(func(ctx context.Context, keys []driver.Digest, first uint64) error {
			return fencedPairs(ctx, store, keys, first)
		}))
		if start%(8*512*16) == 0 {
			client.FlushAll(ctx)
		}
	}
	n := float64(b.N)
	b.ReportMetric(float64(fenced.wall.Nanoseconds())/n, "ns/op")
	b.ReportMetric(n/bare.wall.Seconds(), "bare-pairs/s")
	b.ReportMetric(n/fenced.wall.Seconds(), "pairs/s")
	b.ReportMetric(bare.wall.Seconds()/fenced.wall.Seconds(), "ratio")
	b.ReportMetric((bare.client+bare.server).Seconds()/(fenced.client+fenced.server).Seconds(), "cpu-ratio")
	b.ReportMetric(fenced.server.Seconds()*1e9/n, "server-ns")
	b.ReportMetric(fenced.client.Seconds()*1e9/n, "client-ns")
	b.ReportMetric(bare.server.Seconds()*1e9/n, "bare-server-ns")
	b.ReportMetric(bare.client.Seconds()*1e9/n, "bare-client-ns")
}

// cost is time on the clock, and on the processors of client and server.
type cost struct{ wall, client, server time.Duration }

func (c *cost) measure(tb testing.TB, client *redis.Client, do func()) {
	tb.Helper()
	server, own, began := serverTime(tb, client), ownTime(tb), time.Now()
	do()
	c.wall += time.Since(began)
	c.client += ownTime(tb) - own
	c.server += serverTime(tb, client) - server
}

func ownTime(tb testing.TB) time.Duration {
	tb.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

var cpuLines = regexp.MustCompile(`used_cpu_(?:sys|user)_main_thread:([0-9.]+)`)

func serverTime(tb testing.TB, client *redis.Client) time.Duration {
	tb.Helper()
	text, err := client.Info(tb.Context(), "cpu").Result()
	if err != nil {
		tb.Fatal(err)
	}
	sum := 0.0
	for _, m := range cpuLines.FindAllStringSubmatch(text, -1) {
		seconds, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			tb.Fatal(err)
		}
		sum += seconds
	}
	return time.Duration(sum * 1e9)
}

func batchKeys(start uint64, n int) []driver.Digest {
	keys := make([]driver.Digest, n)
	for i := range keys {
		x := (start + uint64(i) + 1) * 0x9e3779b97f4a7c15
		binary.BigEndian.PutUint64(keys[i][:], x)
		binary.BigEndian.PutUint64(keys[i][8:], start+uint64(i))
	}
	return keys
}

func barePairs(ctx context.Context, client *redis.Client, keys []driver.Digest) error {
	pipe := client.Pipeline()
	for i := range keys {
		pipe.SetNX(ctx, bareKey(&keys[i]), "pending", 72*time.Hour)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	pipe = client.Pipeline()
	for i := range keys {
		pipe.Set(ctx, bareKey(&keys[i]), "done:12345678901234567890", 14*24*time.Hour)
	}
	_, err := pipe.Exec(ctx)
	return err
}

func bareKey(d *driver.Digest) string { return "bare:" + hex.EncodeToString(d[:]) }

func fencedPairs(ctx context.Context, store driver.Store, keys []driver.Digest, start uint64) error {
	claims := make([]driver.Claim, len(keys))
	for i := range claims {
		claims[i] = claimOf(keys[i], start+uint64(i))
	}
	seals := make([]driver.Transition, len(keys))
	for i, a := range store.Claim(ctx, "%-:orders", claims) {
		if a.Err != nil || a.Answer != driver.New {
			return fmt.Errorf("claim: %v %w", a.Answer, a.Err)
		}
		seals[i] = sealOf(&claims[i], &a.Record)
	}
	for _, a := range store.Apply(ctx, "%-:orders", seals) {
		if a.Err != nil || a.Outcome != driver.OK {
			return fmt.Errorf("seal: %v %w", a.Outcome, a.Err)
		}
	}
	return nil
}

func claimOf(key driver.Digest, n uint64) driver.Claim {
	c := driver.Claim{
		Key: key, Kind: driver.KindIdempotent, Attempt: 1, Lease: 10 * time.Second, Fingerprint: driver.Fingerprint{Scheme: 1, Sum: [16]byte(key[:16])},
		Origin: driver.Origin{Source: "kafka", Topic: "orders", Partition: int32(n % 12), Offset: int64(n), Timestamp: time.Now().UnixMilli() - 50},
	}
	binary.BigEndian.PutUint64(c.Nonce[:], n+1)
	return c
}

func sealOf(c *driver.Claim, held *driver.Record) driver.Transition {
	return driver.Transition{
		Op: driver.Seal, Key: c.Key, Token: held.Token, Attempt: held.Attempt, Kind: held.Kind, Fingerprint: held.Fingerprint,
		Origin: held.Origin, FirstSeen: held.FirstSeen, Retention: 14 * 24 * time.Hour, EffectID: "12345678901234567890",
	}
}

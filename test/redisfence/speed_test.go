package redisfence_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/test/servers"
)

// BenchmarkPairs measures claim and seal together, 512 a batch, on one
// connection, against the bare recipe: SET NX pending and SET done:<effect id>,
// pipelined by hand. The two take turns on the same server, so that their ratio
// means something; ns/op is the fence's for one record.
func BenchmarkPairs(b *testing.B) {
	client := connect(b, servers.OwnRedis(b, &servers.RedisOptions{Args: []string{"--appendonly", "no"}}).URL())
	store := open(b, client, nil)
	ctx := b.Context()
	var bare, fenced time.Duration
	n := 0
	b.ResetTimer()
	for start := 0; start < b.N; start += 512 {
		size := min(512, b.N-start)
		keys := batchKeys(uint64(start), size)
		began := time.Now()
		if err := barePairs(ctx, client, keys); err != nil {
			b.Fatal(err)
		}
		turn := time.Now()
		if err := fencedPairs(ctx, store, keys, uint64(start)); err != nil {
			b.Fatal(err)
		}
		bare += turn.Sub(began)
		fenced += time.Since(turn)
		n += size
		if start%(512*100) == 0 {
			b.StopTimer()
			client.FlushAll(ctx)
			b.StartTimer()
		}
	}
	b.Log(client.Info(ctx, "commandstats").Val())
	b.ReportMetric(float64(fenced.Nanoseconds())/float64(n), "ns/op")
	b.ReportMetric(float64(n)/bare.Seconds(), "bare-pairs/s")
	b.ReportMetric(float64(n)/fenced.Seconds(), "pairs/s")
	b.ReportMetric(bare.Seconds()/fenced.Seconds(), "ratio")
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

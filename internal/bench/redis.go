package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/internal/fenceurl"
)

const (
	pendingFor = 3 * 24 * time.Hour
	doneFor    = 14 * 24 * time.Hour
)

// redisTarget compares with plain SET commands: the recipe is SET NX pending,
// effect, SET done.
type redisTarget struct {
	url, space string
	client     redis.UniversalClient
}

func newRedisTarget(ctx context.Context, url, space string) (*redisTarget, error) {
	client, err := fenceurl.RedisClient(url)
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", fenceurl.Redact(url), err), client.Close())
	}
	return &redisTarget{url: url, space: space, client: client}, nil
}

func (t *redisTarget) open(ctx context.Context) (*fence.Fence, error) {
	return fenceurl.OpenWith(ctx, t.url, &fenceurl.Options{Fence: &fence.Options{Logger: slog.New(slog.DiscardHandler)}})
}

// floorKey has the length and, in a cluster, the spread of the fence's own.
func floorKey(space string, n int) string {
	digest := sha256.Sum256([]byte(id(n)))
	return "idemp:{" + space + ":" + strconv.Itoa(int(digest[0])%16) + "}:" + hex.EncodeToString(digest[:])
}

func (t *redisTarget) floor(ctx context.Context, space string, records, batch int) error {
	keys := make([]string, 0, batch)
	for start := 0; start < records; start += batch {
		keys = keys[:0]
		for n := start; n < min(start+batch, records); n++ {
			keys = append(keys, floorKey(space, n))
		}
		claims, err := t.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, key := range keys {
				p.SetNX(ctx, key, "pending", pendingFor)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, c := range claims {
			if won, err := c.(*redis.BoolCmd).Result(); err != nil || !won { // SetNX makes a BoolCmd
				return fmt.Errorf("a key of the benchmark exists: %w", err)
			}
		}
		if _, err := t.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, key := range keys {
				p.Set(ctx, key, "done:"+key[len(key)-32:], doneFor)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func (t *redisTarget) naive(ctx context.Context, space string, records int) error {
	for n := range records {
		key := floorKey(space, n)
		won, err := t.client.SetNX(ctx, key, "pending", pendingFor).Result()
		if err != nil || !won {
			return fmt.Errorf("a key of the benchmark exists: %w", err)
		}
		if err := t.client.Set(ctx, key, "done:"+key[len(key)-32:], doneFor).Err(); err != nil {
			return err
		}
	}
	return nil
}

func (t *redisTarget) size(ctx context.Context) (int64, error) {
	var used int64
	err := t.eachMaster(ctx, func(c *redis.Client) error {
		info, err := c.Info(ctx, "memory").Result()
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(info, "used_memory:")
		line, _, _ := strings.Cut(rest, "\r\n")
		n, err := strconv.ParseInt(line, 10, 64)
		used += n
		return err
	})
	return used, err
}

func (t *redisTarget) eachMaster(ctx context.Context, f func(c *redis.Client) error) error {
	switch c := t.client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, func(_ context.Context, one *redis.Client) error { return f(one) })
	case *redis.Client:
		return f(c)
	}
	return fmt.Errorf("cannot reach the servers behind a %T one by one", t.client)
}

// clean deletes all keys that have the run's space in their name.
func (t *redisTarget) clean(ctx context.Context) error {
	err := t.eachMaster(ctx, func(c *redis.Client) error {
		keys := c.Scan(ctx, 0, "idemp:{*"+t.space+"*", 5000).Iterator()
		var batch []string
		for keys.Next(ctx) {
			if batch = append(batch, keys.Val()); len(batch) == 1000 {
				if err := t.unlink(ctx, c, batch); err != nil {
					return err
				}
				batch = batch[:0]
			}
		}
		return errors.Join(keys.Err(), t.unlink(ctx, c, batch))
	})
	return errors.Join(err, t.client.Close())
}

func (t *redisTarget) unlink(ctx context.Context, c *redis.Client, keys []string) error {
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys { // one by one: in a cluster they are of many slots
			p.Unlink(ctx, key)
		}
		return nil
	})
	return err
}

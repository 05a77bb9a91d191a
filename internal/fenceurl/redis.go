package fenceurl

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/redisfence"
)

// openRedis reads the client library's own URL, whose query may hold its
// options, and beside these: master_name for Sentinel (the host and any addr
// are sentinels), cluster=true or any addr for Cluster, and buckets for a
// namespace that was made with another number than the default.
func openRedis(ctx context.Context, raw string, opts *Options) (*fence.Fence, error) {
	client, buckets, err := newClient(raw)
	if err != nil {
		return nil, err
	}
	store, err := redisfence.NewStore(client, &redisfence.Options{Buckets: buckets})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	owned := &ownedRedis{Store: store, client: client}
	if err := ping(ctx, client); err != nil {
		return nil, errors.Join(err, owned.Close())
	}
	f, err := fence.New(owned, opts.Fence)
	if err != nil {
		return nil, errors.Join(err, owned.Close())
	}
	return f, nil
}

// ownedRedis closes the client too, which nobody else has.
type ownedRedis struct {
	*redisfence.Store
	client redis.UniversalClient
}

func (s *ownedRedis) Close() error { return errors.Join(s.Store.Close(), s.client.Close()) }

func newClient(raw string) (client redis.UniversalClient, buckets int, err error) {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Host == "" {
		// The parser's error would repeat the password.
		return nil, 0, errors.New("this is no redis://HOST:PORT/DB: escape what is special in a password, as %40 for @")
	}
	query := u.Query()
	cluster := query.Has("addr")
	if text := query.Get("cluster"); text != "" {
		if cluster, err = strconv.ParseBool(text); err != nil {
			return nil, 0, fmt.Errorf("cluster=%s is neither true nor false", text)
		}
	}
	if text := query.Get("buckets"); text != "" {
		if buckets, err = strconv.Atoi(text); err != nil {
			return nil, 0, fmt.Errorf("buckets=%s is not a number", text)
		}
	}
	sentinel := query.Has("master_name")
	query.Del("cluster")
	query.Del("buckets")
	u.RawQuery = query.Encode()
	switch {
	case sentinel:
		o, err := redis.ParseFailoverURL(u.String())
		if err != nil {
			return nil, 0, err
		}
		return redis.NewFailoverClient(o), buckets, nil
	case cluster:
		o, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, 0, err
		}
		return redis.NewClusterClient(o), buckets, nil
	default:
		o, err := redis.ParseURL(u.String())
		if err != nil {
			return nil, 0, err
		}
		return redis.NewClient(o), buckets, nil
	}
}

// ping waits for an answer until ctx ends, which the client itself looks at
// only now and then.
func ping(ctx context.Context, client redis.UniversalClient) error {
	answer := make(chan error, 1)
	go func() { answer <- client.Ping(ctx).Err() }()
	select {
	case err := <-answer:
		if err != nil {
			return fmt.Errorf("the server cannot be used: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the server did not answer: %w", context.Cause(ctx))
	}
}

// RedisClient makes the client that Open would use for a redis:// or rediss://
// URL, without a word to the server. The caller closes it.
func RedisClient(raw string) (redis.UniversalClient, error) {
	client, _, err := newClient(raw)
	return client, err
}

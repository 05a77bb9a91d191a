package redisfence

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence"
)

func TestRefusedByName(t *testing.T) {
	node := func(change func(*redis.Options)) redis.UniversalClient {
		o := &redis.Options{Addr: "127.0.0.1:1"}
		change(o)
		return redis.NewClient(o)
	}
	cluster := func(change func(*redis.ClusterOptions)) redis.UniversalClient {
		o := &redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}
		change(o)
		return redis.NewClusterClient(o)
	}
	plain := node(func(*redis.Options) {})
	for _, c := range []struct {
		name   string
		client redis.UniversalClient
		opts   *Options
		want   string
	}{
		{"no client", nil, nil, "client is nil"},
		{"read only", cluster(func(o *redis.ClusterOptions) { o.ReadOnly = true }), nil, "ReadOnly"},
		{"by latency", cluster(func(o *redis.ClusterOptions) { o.RouteByLatency = true }), nil, "RouteByLatency"},
		{"randomly", cluster(func(o *redis.ClusterOptions) { o.RouteRandomly = true }), nil, "RouteRandomly"},
		{"ring", redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}}), nil, "Ring"},
		{"no time-out", node(func(o *redis.Options) { o.ReadTimeout = -1 }), nil, "ReadTimeout"},
		{"no deadline", node(func(o *redis.Options) { o.ReadTimeout = -2 }), nil, "ReadTimeout"},
		{"cluster without time-out", cluster(func(o *redis.ClusterOptions) { o.ReadTimeout = -1 }), nil, "ReadTimeout"},
		{"negative buckets", plain, &Options{Buckets: -1}, "Options.Buckets is -1"},
		{"too many buckets", plain, &Options{Buckets: 257}, "use 1 to 256"},
		{"fence options", plain, &Options{Fence: &fence.Options{Retention: -1}}, "Retention"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.client != nil {
				defer c.client.Close()
			}
			f, err := New(c.client, c.opts)
			if err == nil || f != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("answered %v, %v, want an error with %q", f, err, c.want)
			}
		})
	}
}

// A second client must not turn on again what the user turned off: the client
// keeps zero for off, which a new one takes for the default.
func TestRenewalOptions(t *testing.T) {
	first := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", MaxRetries: -1, MinRetryBackoff: -1, MaxRetryBackoff: -1, WriteTimeout: -2, ReadTimeout: time.Second,
		PoolSize: 50, MinIdleConns: 10, Username: "u", Password: "p", DB: 3,
	})
	defer first.Close()
	second := redis.NewClient(renewalOptions(first.Options()))
	defer second.Close()
	a, b := first.Options(), second.Options()
	if a.MaxRetries != b.MaxRetries || a.MinRetryBackoff != b.MinRetryBackoff || a.MaxRetryBackoff != b.MaxRetryBackoff ||
		a.WriteTimeout != b.WriteTimeout || a.ReadTimeout != b.ReadTimeout || a.Username != b.Username || a.Password != b.Password || a.DB != b.DB {
		t.Errorf("first %+v\nsecond %+v", a, b)
	}
	if b.PoolSize != renewalConns || b.MinIdleConns != 0 {
		t.Errorf("the second client keeps %d connections, %d of them idle", b.PoolSize, b.MinIdleConns)
	}
}

func TestRenewalClusterOptions(t *testing.T) {
	first := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"127.0.0.1:1"}, MaxRedirects: -1, MaxRetries: -1, MinRetryBackoff: -1, MaxRetryBackoff: -1, Password: "p",
	})
	defer first.Close()
	a := *first.Options()
	second := redis.NewClusterClient(renewalClusterOptions(first.Options()))
	defer second.Close()
	b := second.Options()
	if a.MaxRedirects != b.MaxRedirects || a.MaxRetries != b.MaxRetries || a.MinRetryBackoff != b.MinRetryBackoff ||
		a.MaxRetryBackoff != b.MaxRetryBackoff || a.WriteTimeout != b.WriteTimeout || a.Password != b.Password {
		t.Errorf("first %+v\nsecond %+v", a, *b)
	}
}

// otherClient is an implementation that this package does not know.
type otherClient struct{ *redis.Client }

func TestUnknownClient(t *testing.T) {
	client := otherClient{redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})}
	defer client.Close()
	s, err := NewStore(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !s.byBucket || s.own || s.renewals != redis.UniversalClient(client) {
		t.Error("an unknown client must get one bucket a script and share its connections with the renewals")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

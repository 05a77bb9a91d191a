package redisfence

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// renewalConns is enough: a fence renews from one goroutine per namespace.
const renewalConns = 4

// renewalOptions copies the options of a client for a second one. A client
// keeps its options with the defaults filled in and with zero for what is off;
// a new one would take that zero for the default again.
func renewalOptions(from *redis.Options) *redis.Options {
	o := *from
	o.MaxRetries = off(o.MaxRetries)
	o.MinRetryBackoff, o.MaxRetryBackoff = off(o.MinRetryBackoff), off(o.MaxRetryBackoff)
	o.WriteTimeout = offTimeout(o.WriteTimeout)
	o.PoolSize, o.PipelinePoolSize = renewalConns, -1
	o.MaxConcurrentDials, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 0, 0, 0, 0
	o.AutoPipelineOptions = nil
	// Nothing of these is used by scripts, and they belong to one client.
	o.PushNotificationProcessor = nil
	o.ClientSideCache, o.ClientSideCacheConfig = nil, nil
	return &o
}

func renewalClusterOptions(from *redis.ClusterOptions) *redis.ClusterOptions {
	o := *from
	o.MaxRedirects = off(o.MaxRedirects)
	o.MinRetryBackoff, o.MaxRetryBackoff = off(o.MinRetryBackoff), off(o.MaxRetryBackoff)
	o.WriteTimeout = offTimeout(o.WriteTimeout)
	o.PoolSize, o.PipelinePoolSize = renewalConns, -1
	o.MaxConcurrentDials, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 0, 0, 0, 0
	o.AutoPipelineOptions = nil
	o.PushNotificationProcessor = nil
	return &o
}

func off[T int | time.Duration](n T) T {
	if n == 0 {
		return -1
	}
	return n
}

func offTimeout(d time.Duration) time.Duration {
	if d <= 0 {
		return d - 1
	}
	return d
}

package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/redisfence"
	"github.com/oncefence/oncefence/test/servers"
)

// Failover is what the death of a Redis master has cost.
type Failover struct {
	// Sealed are the seals that were answered, Lost those of them that the
	// replica did not have when it became the master.
	Sealed, Lost int
}

const (
	replicationLag = 30 * time.Millisecond
	failoverBatch  = 20
)

// MeasureFailover seals keys until the master is killed, makes its replica the
// master, and counts the answered seals that are not there. The replica is a
// little behind (30 ms), as over a network. wait is redisfence's WaitReplicas.
func MeasureFailover(ctx context.Context, wait int, after time.Duration) (f Failover, err error) {
	master, err := servers.StartRedis(ctx, &servers.RedisOptions{From: servers.Program, Own: true})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, master.Close()) }()
	replica, err := servers.StartRedis(ctx, &servers.RedisOptions{From: servers.Program, Own: true})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, replica.Close()) }()
	slow, err := startProxy(master.Addr())
	if err != nil {
		return f, err
	}
	defer slow.close()
	toReplica := redis.NewClient(&redis.Options{Addr: replica.Addr()})
	defer toReplica.Close()
	host, port, err := net.SplitHostPort(slow.addr())
	if err != nil {
		return f, err
	}
	if err := toReplica.Do(ctx, "replicaof", host, port).Err(); err != nil {
		return f, err
	}
	linked := func() bool {
		return toReplica.InfoMap(ctx, "replication").Item("Replication", "master_link_status") == "up"
	}
	if err := within(ctx, 20*time.Second, linked); err != nil {
		return f, fmt.Errorf("the replica does not follow: %w", err)
	}
	slow.set(func(p *proxy) { p.delay = replicationLag })

	_, masterPort, err := net.SplitHostPort(master.Addr())
	if err != nil {
		return f, err
	}
	dying, err := findServers("redis", ":"+masterPort)
	if err != nil {
		return f, err
	}
	timer := time.AfterFunc(after, func() { _ = dying[0].kill() }) // gone already is as good
	defer timer.Stop()
	ns, sealed, err := sealUntilDead(ctx, master.Addr(), wait)
	if err != nil {
		return f, err
	}
	slow.drop()
	if err := toReplica.Do(ctx, "replicaof", "no", "one").Err(); err != nil {
		return f, err
	}
	store, err := redisfence.NewStore(toReplica, nil)
	if err != nil {
		return f, err
	}
	records, err := store.Get(ctx, ns, sealed)
	if err != nil {
		return f, err
	}
	f.Sealed = len(sealed)
	for _, r := range records {
		if r.State != driver.Done {
			f.Lost++
		}
	}
	return f, store.Close()
}

// sealUntilDead claims and seals keys until the server does not answer, and
// returns those whose seal was answered.
func sealUntilDead(ctx context.Context, addr string, wait int) (namespace string, sealed []driver.Digest, err error) {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialTimeout: time.Second})
	defer client.Close()
	f, err := redisfence.New(client, &redisfence.Options{WaitReplicas: wait})
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	ns, err := fence.NewNamespace(fence.Nil, "failover")
	if err != nil {
		return "", nil, err
	}
	space, err := f.Open(ctx, ns)
	if err != nil {
		return "", nil, err
	}
	defer space.Close(ctx)
	for n := 0; ; n++ {
		requests := make([]*fence.Request, failoverBatch)
		for i := range requests {
			key := fence.RecordKey(fence.ScopeID, "", 0, fence.Nil, fence.Text(fmt.Sprintf("%d-%d", n, i)))
			requests[i] = &fence.Request{Key: key, Kind: driver.KindIdempotent, Attempt: 1, Lease: time.Minute}
		}
		bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
		var seals []driver.Transition
		var keys []driver.Digest
		for i, c := range space.Claim(bounded, requests) {
			if c.Err == nil && c.Hold != nil {
				seals = append(seals, c.Hold.Seal(driver.KindIdempotent, "sink-id", nil))
				keys = append(keys, requests[i].Key.Digest())
				c.Hold.Drop()
			}
		}
		answered := 0
		for i, a := range space.Apply(bounded, seals) {
			if a.Err == nil && a.Outcome == driver.OK {
				sealed = append(sealed, keys[i])
				answered++
			}
		}
		cancel()
		if answered == 0 {
			return ns.Text(), sealed, nil
		}
	}
}

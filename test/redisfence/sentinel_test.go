package redisfence_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/test/servers"
)

// After a failover claims, seals and renewals go to the new master, and what
// had reached it is known there.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	master := servers.OwnRedis(t, &servers.RedisOptions{From: servers.Program, Args: []string{"--repl-diskless-sync-delay", "0"}})
	replica := servers.OwnRedis(t, &servers.RedisOptions{From: servers.Program})
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	toReplica := connect(t, replica.URL())
	if err := toReplica.Do(t.Context(), "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	sentinel := startSentinel(t, host, port)
	eventually(t, "the sentinel knows the replica", func() error {
		found, err := sentinel.Replicas(t.Context(), "main").Result()
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("it knows %d", len(found))
		}
		return err
	})

	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{sentinel.addr}})
	t.Cleanup(func() { _ = client.Close() })
	store, ns := open(t, client, nil), namespace(t)
	claims := claimsOf(1, 100)
	held := hold(t, store, ns, claims)
	renewals := make([]driver.Transition, len(claims))
	for i := range claims {
		renewals[i] = driver.Transition{Op: driver.Renew, Key: claims[i].Key, Token: held[i].Record.Token, Lease: time.Minute}
	}
	wantApplied(t, store.Apply(t.Context(), ns, renewals), driver.OK)
	if n := connect(t, master.URL()).Wait(t.Context(), 1, 5*time.Second).Val(); n != 1 {
		t.Fatalf("%d replicas have the claims", n)
	}
	eventually(t, "the failover begins", func() error { return sentinel.Failover(t.Context(), "main").Err() })
	// Until the old master is demoted it takes writes that are lost then: Redis
	// promises no more. The store must find the new one when it answers READONLY.
	for want, server := range map[string]*redis.Client{"master": toReplica, "slave": connect(t, master.URL())} {
		eventually(t, "the roles are changed", func() error {
			if role := server.InfoMap(t.Context(), "replication").Item("Replication", "role"); role != want {
				return fmt.Errorf("it is a %s, not a %s", role, want)
			}
			return nil
		})
	}
	eventually(t, "renewals reach the new master", func() error { return firstError(store.Apply(t.Context(), ns, renewals)) })
	eventually(t, "seals reach the new master", func() error { return firstError(store.Apply(t.Context(), ns, sealsOf(claims, held))) })
	value, err := toReplica.Get(t.Context(), keyOf(ns, claims[7].Key)).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if r, err := driver.ParseRecord(value); err != nil || r.State != driver.Done || r.Token != held[7].Record.Token {
		t.Errorf("the new master has %+v, %v", r, err)
	}
	again := claimsOf(1, 100)
	for i := range again {
		again[i].Nonce[15] = 1
	}
	for i, a := range store.Claim(t.Context(), ns, again) {
		if a.Err != nil || a.Answer != driver.Duplicate {
			t.Fatalf("claim %d after the failover: %v, %v", i, a.Answer, a.Err)
		}
	}
}

func firstError(answers []driver.Applied) error {
	for _, a := range answers {
		if a.Err != nil {
			return a.Err
		}
		if a.Outcome != driver.OK && a.Outcome != driver.Repeated {
			return fmt.Errorf("outcome %v", a.Outcome)
		}
	}
	return nil
}

type sentinelClient struct {
	*redis.SentinelClient
	addr string
}

// startSentinel watches one master; it ends with the test.
func startSentinel(t *testing.T, host, port string) sentinelClient {
	t.Helper()
	own := freePort(t)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	conf := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor main %s %s 1\nsentinel down-after-milliseconds main 5000\nsentinel failover-timeout main 10000\n", own, host, port)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "redis-server", file, "--sentinel") // killed with the test
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails only if it has ended
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			t.Error(err)
		}
	})
	addr := net.JoinHostPort("127.0.0.1", own)
	client := redis.NewSentinelClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	eventually(t, "the sentinel answers", func() error { return client.Ping(t.Context()).Err() })
	if err := connect(t, "redis://"+addr).Do(t.Context(), "sentinel", "debug", "info-period", 500, "publish-period", 250).Err(); err != nil {
		t.Fatal(err)
	}
	return sentinelClient{client, addr}
}

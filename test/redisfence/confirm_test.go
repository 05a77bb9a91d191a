package redisfence_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/redisfence"
	"github.com/oncefence/oncefence/test/servers"
)

// Claims and seals are answered when a replica has them, and not before. What
// was not confirmed can be sent again.
func TestWaitReplicas(t *testing.T) {
	t.Parallel()
	own := &servers.RedisOptions{From: servers.Program, Args: []string{"--repl-diskless-sync-delay", "0"}}
	master, replica := servers.OwnRedis(t, own), servers.OwnRedis(t, own)
	follower := connect(t, replica.URL())
	follow := func(host, port string) {
		t.Helper()
		if err := follower.Do(t.Context(), "replicaof", host, port).Err(); err != nil {
			t.Fatal(err)
		}
	}
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	client := connect(t, master.URL())
	store := open(t, client, &redisfence.Options{WaitReplicas: 1, WaitTimeout: 300 * time.Millisecond})
	ns := namespace(t)

	claims := claimsOf(1, 600)
	wantErrors(t, store.Claim(t.Context(), ns, claims), "0 of 1 replicas")
	follow(host, port)
	eventually(t, "the replica confirms", func() error { return errors.Join(store.Claim(t.Context(), ns, claims[:1])[0].Err) })
	held := hold(t, store, ns, claims)
	if g, err := store.Grade(t.Context()); err != nil || g.Level != driver.GradeReplicated {
		t.Errorf("grade %+v, %v", g, err)
	}
	if n := follower.DBSize(t.Context()).Val(); n != 600 {
		t.Errorf("the replica has %d of 600 confirmed claims", n)
	}

	follow("no", "one")
	seals := sealsOf(claims, held)
	for i, a := range store.Apply(t.Context(), ns, seals[:10]) {
		if a.Err == nil || !strings.Contains(a.Err.Error(), "0 of 1 replicas") || a.Outcome != driver.NoOutcome {
			t.Fatalf("seal %d: %v, %v", i, a.Outcome, a.Err)
		}
	}
	// A renewal or a verdict settles nothing and waits for nobody.
	renewal := driver.Transition{Op: driver.Renew, Key: claims[20].Key, Token: held[20].Record.Token, Lease: time.Minute}
	wantApplied(t, store.Apply(t.Context(), ns, []driver.Transition{renewal}), driver.OK)
	follow(host, port)
	eventually(t, "seals are confirmed", func() error { return firstError(store.Apply(t.Context(), ns, seals)) })
	value, err := follower.Get(t.Context(), keyOf(ns, claims[599].Key)).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if r, err := driver.ParseRecord(value); err != nil || r.State != driver.Done {
		t.Errorf("the replica has %+v, %v", r, err)
	}
}

// In a cluster each node's replica confirms its own part, also while a slot
// moves.
func TestWaitReplicasCluster(t *testing.T) {
	t.Parallel()
	c := startNodes(t, 6)
	store := open(t, c.client(t), &redisfence.Options{WaitReplicas: 1})
	ns := namespace(t)
	claims := claimsOf(1, 800)
	held := hold(t, store, ns, claims)
	kept := int64(0)
	for _, node := range c.nodes[3:] {
		kept += node.DBSize(t.Context()).Val()
	}
	if kept != 800 {
		t.Errorf("the replicas have %d of 800 confirmed claims", kept)
	}
	wantApplied(t, store.Apply(t.Context(), ns, sealsOf(claims, held)), driver.OK)

	other := ns + "-moved"
	slot := int(c.nodes[0].ClusterKeySlot(t.Context(), keyOf(other, driver.Digest{})).Val())
	from := slot * 3 / slots
	to := (from + 1) % 3
	id := func(node int) string { return c.nodes[node].ClusterMyID(t.Context()).Val() }
	set := func(node int, args ...any) {
		t.Helper()
		if err := c.nodes[node].Do(t.Context(), append([]any{"cluster", "setslot", slot}, args...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set(to, "importing", id(from))
	set(from, "migrating", id(to))
	first, second := claimsOf(5000, 300), claimsOf(6000, 300)
	hold(t, store, other, first) // new keys of that slot are asked for at the other node
	set(to, "node", id(to))
	set(from, "node", id(to))
	hold(t, store, other, second) // the client does not know yet
	records, err := open(t, c.client(t), nil).Get(t.Context(), other, batchKeys(5000, 300))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		if r.State != driver.Pending || r.Nonce != first[i].Nonce {
			t.Fatalf("record %d is %v", i, r.State)
		}
	}
}

func TestWaitReplicasRefused(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = client.Close() })
	for _, c := range []struct {
		client redis.UniversalClient
		opts   redisfence.Options
		want   string
	}{
		{client, redisfence.Options{WaitReplicas: -1}, "negative"},
		{client, redisfence.Options{WaitReplicas: 1, WaitTimeout: -1}, "negative"},
		{client, redisfence.Options{WaitReplicas: 1, WaitTimeout: time.Minute}, "ReadTimeout"},
		{struct{ *redis.Client }{client}, redisfence.Options{WaitReplicas: 1}, "WaitReplicas needs"},
	} {
		if _, err := redisfence.NewStore(c.client, &c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", fmt.Sprintf("%+v", c.opts), err, c.want)
		}
	}
}

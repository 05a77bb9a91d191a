package redisfence_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/redisfence"
	"github.com/oncefence/oncefence/test/servers"
)

// In a cluster a batch is spread over the nodes and its answers come back in
// order; each record is on the node of its slot.
func TestClusterBatch(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	client := c.client(t)
	store, ns := open(t, client, nil), namespace(t)
	claims := claimsOf(1, 2000)
	held := hold(t, store, ns, claims)
	for i := range held {
		if held[i].Record.Nonce != claims[i].Nonce {
			t.Fatalf("claim %d was answered with another's record", i)
		}
	}
	wantApplied(t, store.Apply(t.Context(), ns, sealsOf(claims, held)), driver.OK)
	seen := 0
	err := store.Scan(t.Context(), ns, driver.Filter{}, func(d driver.Digest, r driver.Record) bool {
		seen++
		return r.State == driver.Done
	})
	if err != nil || seen != 2000 {
		t.Errorf("scan saw %d of 2000: %v", seen, err)
	}
	for i, node := range c.nodes {
		if n := node.DBSize(t.Context()).Val(); n < 100 {
			t.Errorf("node %d holds %d keys", i, n)
		}
	}
	if g, err := store.Grade(t.Context()); err != nil || g.Level != driver.GradeRestart || g.Eviction != "noeviction" || !strings.Contains(g.Detail, "3 masters") {
		t.Errorf("grade %+v, %v", g, err)
	}
}

// While a slot moves to another node its keys are served one by one.
func TestSlotMoves(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	store, ns := open(t, c.client(t), nil), namespace(t)
	var claims []driver.Claim
	for _, claim := range claimsOf(1, 2000) {
		if claim.Key[0]%16 == 3 {
			claims = append(claims, claim)
		}
	}
	half := len(claims) / 2
	held := hold(t, store, ns, claims[:half])

	slot := int(c.nodes[0].ClusterKeySlot(t.Context(), keyOf(ns, claims[0].Key)).Val())
	from := slot * 3 / slots
	to := (from + 1) % 3
	ids := make([]string, 3)
	for i, node := range c.nodes {
		ids[i] = node.ClusterMyID(t.Context()).Val()
	}
	do := func(node int, args ...any) {
		t.Helper()
		if err := c.nodes[node].Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	do(to, "cluster", "setslot", slot, "importing", ids[from])
	do(from, "cluster", "setslot", slot, "migrating", ids[to])
	host, port, _ := strings.Cut(c.addrs[to], ":")
	for _, claim := range claims[:half/2] {
		do(from, "migrate", host, port, keyOf(ns, claim.Key), 0, 2000)
	}
	// Of this batch some keys have moved, some have not, some are new.
	other := slices.Clone(claims)
	for i := range other {
		other[i].Nonce[15] = 1
	}
	for i, a := range store.Claim(t.Context(), ns, other) {
		if want := map[bool]driver.Answer{true: driver.Held, false: driver.New}[i < half]; a.Err != nil || a.Answer != want {
			t.Fatalf("claim %d: %v, %v, want %v", i, a.Answer, a.Err, want)
		}
	}
	wantApplied(t, store.Apply(t.Context(), ns, sealsOf(claims[:half], held)), driver.OK)

	for _, claim := range claims[half/2 : half] {
		do(from, "migrate", host, port, keyOf(ns, claim.Key), 0, 2000)
	}
	for _, node := range []int{to, from, 3 - to - from} {
		do(node, "cluster", "setslot", slot, "node", ids[to])
	}
	for i, a := range store.Claim(t.Context(), ns, other[:half]) {
		if a.Err != nil || a.Answer != driver.Duplicate {
			t.Fatalf("claim %d after the move: %v, %v", i, a.Answer, a.Err)
		}
	}
}

// A node that is down fails the items of its slots and no others.
func TestNodeDown(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.addrs, MaxRedirects: 1, DialTimeout: 200 * time.Millisecond, DialerRetries: 1, ReadTimeout: time.Second,
	})
	t.Cleanup(func() { _ = client.Close() })
	store, ns := open(t, client, nil), namespace(t)
	for _, node := range c.nodes { // the others would refuse everything else
		if err := node.ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err(); err != nil {
			t.Fatal(err)
		}
	}
	claims := claimsOf(1, 200)
	hold(t, store, ns, claims)
	_ = c.nodes[2].ShutdownNoSave(t.Context()).Err() // the connection ends
	failed := 0
	for i, a := range store.Claim(t.Context(), ns, claims) {
		slot := int(c.nodes[0].ClusterKeySlot(t.Context(), keyOf(ns, claims[i].Key)).Val())
		down := slot*3/slots == 2
		if down != (a.Err != nil) || !down && a.Answer != driver.New {
			t.Fatalf("claim %d in slot %d: %v, %v", i, slot, a.Answer, a.Err)
		}
		if down {
			failed++
		}
	}
	if failed == 0 || failed == len(claims) {
		t.Fatalf("%d of %d claims failed: the namespace is not spread over the nodes", failed, len(claims))
	}
}

// A plain client on a cluster's node is told what to do.
func TestPlainClientOnCluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	store := open(t, c.nodes[0], nil)
	wantErrors(t, store.Claim(t.Context(), namespace(t), claimsOf(1, 50)), "NewClusterClient")
}

// Claim and seal of 1,000 records in batches of 500 cost 4 round trips on one
// node, and one to each node for each batch in a cluster.
func TestRoundTrips(t *testing.T) {
	client := connect(t, servers.Redis(t).URL())
	var one trips
	client.AddHook(&one)
	ns := namespace(t)
	pairs := func(store *redisfence.Store) {
		for start := uint64(0); start < 1000; start += 500 {
			claims := claimsOf(start, 500)
			wantApplied(t, store.Apply(t.Context(), ns, sealsOf(claims, hold(t, store, ns, claims))), driver.OK)
		}
	}
	store := open(t, client, nil)
	hold(t, store, ns, claimsOf(1<<32, 1))
	wantApplied(t, store.Apply(t.Context(), ns, sealsOf(claimsOf(1<<32, 1), hold(t, store, ns, claimsOf(1<<32, 1)))), driver.OK)
	one.n.Store(0)
	pairs(store)
	if n := one.n.Load(); n != 4 {
		t.Errorf("one node: %d round trips, want 4", n)
	}

	spread := startCluster(t).client(t)
	var all trips
	spread.OnNewNode(func(node *redis.Client) { node.AddHook(&all) })
	clustered := open(t, spread, nil)
	warm := claimsOf(1<<32, 100)
	wantApplied(t, clustered.Apply(t.Context(), ns, sealsOf(warm, hold(t, clustered, ns, warm))), driver.OK)
	all.n.Store(0)
	pairs(clustered)
	if n := all.n.Load(); n > 12 {
		t.Errorf("three nodes: %d round trips, want at most 12", n)
	}
}

// trips counts what goes to a server in one flush.
type trips struct{ n atomic.Int64 }

func (h *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.n.Add(1)
		return next(ctx, cmd)
	}
}

func (h *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.n.Add(1)
		return next(ctx, cmds)
	}
}

// The marker keeps what the first call said, and refuses another number of
// buckets, which would find no record.
func TestMarkerBuckets(t *testing.T) {
	client := connect(t, servers.Redis(t).URL())
	ns := namespace(t)
	first, err := open(t, client, nil).Marker(t.Context(), ns, driver.Marker{Epoch: [16]byte{1}, Format: 1})
	if err != nil || first.Buckets != 16 {
		t.Fatalf("first marker %+v, %v", first, err)
	}
	update := driver.Marker{Epoch: [16]byte{2}, Format: 1, Partitions: map[string]int32{"orders": 12}}
	_, err = open(t, client, &redisfence.Options{Buckets: 8}).Marker(t.Context(), ns, update)
	if err == nil || !strings.Contains(err.Error(), "set redisfence.Options.Buckets to 16") {
		t.Errorf("8 buckets: %v", err)
	}
	kept, err := open(t, client, nil).Marker(t.Context(), ns, driver.Marker{})
	if err != nil || kept.Epoch != first.Epoch || len(kept.Partitions) != 0 {
		t.Errorf("after the refusal: %+v, %v", kept, err)
	}
	if _, err := open(t, client, &redisfence.Options{Buckets: 8}).Marker(t.Context(), ns+"-8", update); err != nil {
		t.Errorf("8 buckets in a namespace of its own: %v", err)
	}
	if text := fmt.Sprint(client.HGetAll(t.Context(), "idemp:{"+ns+":m}:marker").Val()["buckets"]); text != "16" {
		t.Errorf("the hash says %s buckets", text)
	}
}

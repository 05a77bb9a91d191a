package redisfence_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/test/servers"
)

// A server that forgot its scripts gets them again with the batch.
func TestScriptFlush(t *testing.T) {
	client := connect(t, servers.OwnRedis(t, nil).URL())
	store, ns := open(t, client, nil), namespace(t)
	claims := claimsOf(1, 1200) // three chunks in one pipeline
	flush := func() {
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	held := hold(t, store, ns, claims)
	flush()
	wantApplied(t, store.Apply(t.Context(), ns, sealsOf(claims, held)), driver.OK)
	flush()
	records, err := store.Get(t.Context(), ns, batchKeys(1, 1200))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		if r.State != driver.Done || r.Token != held[i].Record.Token {
			t.Fatalf("record %d is %v with token %d", i, r.State, r.Token)
		}
	}
}

// A server that starts again has its records from the append-only file and no
// scripts.
func TestRestart(t *testing.T) {
	client := connect(t, servers.OwnRedis(t, &servers.RedisOptions{From: servers.Program, Args: []string{"--enable-debug-command", "yes"}}).URL())
	store, ns := open(t, client, nil), namespace(t)
	claims := claimsOf(1, 50)
	held := hold(t, store, ns, claims)
	wantApplied(t, store.Apply(t.Context(), ns, sealsOf(claims[:25], held[:25])), driver.OK)

	id := runID(t, client)
	_ = client.Do(t.Context(), "debug", "restart").Err() // the connection ends
	eventually(t, "the server is back", func() error {
		if now, err := client.InfoMap(t.Context(), "server").Result(); err != nil {
			return err
		} else if now["Server"]["run_id"] == id {
			return errors.New("it has not gone down yet")
		}
		return nil
	})
	wantApplied(t, store.Apply(t.Context(), ns, sealsOf(claims[25:], held[25:])), driver.OK)
	again := claimsOf(1, 50)
	for i := range again {
		again[i].Nonce[15] = 1
	}
	for i, a := range store.Claim(t.Context(), ns, again) {
		if a.Err != nil || a.Answer != driver.Duplicate || a.Record.Token != held[i].Record.Token {
			t.Fatalf("claim %d: %v, %v", i, a.Answer, a.Err)
		}
	}
}

func runID(t *testing.T, client *redis.Client) string {
	t.Helper()
	info, err := client.InfoMap(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	return info["Server"]["run_id"]
}

// A server without memory refuses claims as a whole; what was claimed before
// can still be renewed, sealed and released, and read.
func TestOutOfMemory(t *testing.T) {
	client := connect(t, servers.OwnRedis(t, nil).URL())
	store, ns := open(t, client, nil), namespace(t)
	claims := claimsOf(1, 20)
	held := hold(t, store, ns, claims)
	limit := func(bytes string) {
		if err := client.ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	limit("1")
	wantErrors(t, store.Claim(t.Context(), ns, claimsOf(100, 600)), "OOM")
	renewals := make([]driver.Transition, 20)
	for i := range claims {
		renewals[i] = driver.Transition{Op: driver.Renew, Key: claims[i].Key, Token: held[i].Record.Token, Lease: time.Minute}
	}
	wantApplied(t, store.Apply(t.Context(), ns, renewals), driver.OK)
	ends := sealsOf(claims, held)
	for i := range ends[:10] {
		ends[i] = driver.Transition{Op: driver.Release, Key: claims[i].Key, Nonce: claims[i].Nonce}
	}
	wantApplied(t, store.Apply(t.Context(), ns, ends), driver.OK)
	limit("0")
	if records, err := store.Get(t.Context(), ns, batchKeys(100, 600)); err != nil || records[0].State != driver.Absent || records[599].State != driver.Absent {
		t.Fatalf("a refused claim was written: %v", err)
	}
	hold(t, store, ns, claimsOf(100, 600))
}

// A server that has become a replica refuses writes and reads: what it holds
// may be behind.
func TestReplica(t *testing.T) {
	master := servers.OwnRedis(t, nil)
	server := servers.OwnRedis(t, nil)
	client := connect(t, server.URL())
	store, ns := open(t, client, nil), namespace(t)
	hold(t, store, ns, claimsOf(1, 2))
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := client.ReplicaOf(t.Context(), host, port).Err(); err != nil { //nolint:staticcheck // the command of this name
		t.Fatal(err)
	}
	wantErrors(t, store.Claim(t.Context(), ns, claimsOf(100, 2)), "READONLY")
	if _, err := store.Get(t.Context(), ns, batchKeys(1, 2)); err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("a replica was read: %v", err)
	}
	if _, err := store.Grade(t.Context()); err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("a replica was graded: %v", err)
	}
	if err := client.ReplicaOf(t.Context(), "no", "one").Err(); err != nil { //nolint:staticcheck // the command of this name
		t.Fatal(err)
	}
	eventually(t, "claims work again", func() error { return store.Claim(t.Context(), ns, claimsOf(100, 1))[0].Err })
}

// A server that is held up by another's script answers BUSY: an error, and
// nothing is written.
func TestBusy(t *testing.T) {
	client := connect(t, servers.OwnRedis(t, &servers.RedisOptions{Args: []string{"--busy-reply-threshold", "50"}}).URL())
	store, ns := open(t, client, nil), namespace(t)
	hold(t, store, ns, claimsOf(1, 2))
	var wg sync.WaitGroup
	wg.Go(func() { _ = client.Eval(context.WithoutCancel(t.Context()), "while true do end", nil).Err() })
	eventually(t, "the server is busy", func() error {
		a := store.Claim(t.Context(), ns, claimsOf(100, 1))[0]
		if a.Err == nil || !strings.Contains(a.Err.Error(), "BUSY") {
			return fmt.Errorf("claim: %v, %w", a.Answer, a.Err)
		}
		return nil
	})
	if err := client.ScriptKill(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	hold(t, store, ns, claimsOf(200, 2))
}

// What is not a record of ours, or one of a later release, fails that item
// alone and stays as it is.
func TestForeignValues(t *testing.T) {
	client := connect(t, servers.Redis(t).URL())
	store, ns := open(t, client, nil), namespace(t)
	claims := claimsOf(1, 6)
	held := hold(t, store, ns, claims)
	whole, err := client.Get(t.Context(), keyOf(ns, claims[3].Key)).Result()
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range []string{
		"pending", strings.Replace(whole, "\x00\x01", "\x00\x02", 1), whole[:len(whole)-2], whole + "x",
	} {
		if err := client.Set(t.Context(), keyOf(ns, claims[i].Key), value, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Del(t.Context(), keyOf(ns, claims[4].Key)).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.RPush(t.Context(), keyOf(ns, claims[4].Key), "x").Err(); err != nil {
		t.Fatal(err)
	}
	dump := func() (out [5]string) {
		for i := range out {
			out[i] = client.Dump(t.Context(), keyOf(ns, claims[i].Key)).Val()
		}
		return out
	}
	before := dump()
	other := append([]driver.Claim{}, claims...)
	other[5] = claimsOf(50, 1)[0]
	for i := range other {
		other[i].Nonce[15] = 1
	}
	for i, a := range store.Claim(t.Context(), ns, other) {
		checkForeign(t, i, a.Err)
	}
	if dump() != before {
		t.Error("a claim wrote over a value that cannot be read")
	}
	for i, a := range store.Apply(t.Context(), ns, sealsOf(claims[:5], held[:5])) {
		if i == 2 || i == 3 {
			continue // the front names the holder, and a seal needs no more
		}
		checkForeign(t, i, a.Err)
	}
	after := dump()
	after[2], after[3] = before[2], before[3]
	if before != after {
		t.Error("a seal wrote over a value that cannot be read")
	}
	if _, err := store.Get(t.Context(), ns, []driver.Digest{claims[0].Key}); !errors.Is(err, driver.ErrUnreadable) {
		t.Errorf("get answers %v", err)
	}
}

func checkForeign(t *testing.T, i int, err error) {
	t.Helper()
	switch {
	case i < 4 && !errors.Is(err, driver.ErrUnreadable):
		t.Errorf("item %d: %v, want %v", i, err, driver.ErrUnreadable)
	case i == 4 && (err == nil || !strings.Contains(err.Error(), "WRONGTYPE")):
		t.Errorf("item %d: %v, want WRONGTYPE", i, err)
	case i == 5 && err != nil:
		t.Errorf("the good item: %v", err)
	}
}

func keyOf(ns string, d driver.Digest) string {
	return fmt.Sprintf("idemp:{%s:%d}:%x", ns, d[0]%16, d[:])
}

// A transition that has no packed form fails alone.
func TestUnfitTransitions(t *testing.T) {
	store, ns := open(t, connect(t, servers.Redis(t).URL()), nil), namespace(t)
	claims := claimsOf(1, 4)
	seals := sealsOf(claims, hold(t, store, ns, claims))
	seals[0].EffectID = ""
	seals[1].EffectID = "a\nb"
	seals[2].Op = driver.NoOp
	for i, a := range store.Apply(t.Context(), ns, seals) {
		if (i == 3) != (a.Err == nil && a.Outcome == driver.OK) {
			t.Errorf("transition %d: %v, %v", i, a.Outcome, a.Err)
		}
	}
	if answers := store.Apply(t.Context(), ns, seals[:3]); answers[0].Err == nil || answers[2].Err == nil {
		t.Error("unfit transitions alone pass")
	}
}

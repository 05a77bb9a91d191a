package boltfence_test

import (
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncefence/oncefence/fence/boltfence"
	"github.com/oncefence/oncefence/fence/driver"
)

// entries counts the expiry index's entries and keys of a closed file.
func entries(t *testing.T, path string) (entries, keys int) {
	t.Helper()
	edit(t, path, func(tx *bbolt.Tx) error {
		index := tx.Bucket([]byte("expiry/" + namespace))
		if index == nil {
			return nil
		}
		return index.ForEach(func(_, value []byte) error {
			entries++
			keys += len(value) / 32
			return nil
		})
	})
	return entries, keys
}

func TestPurgeCost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence.bolt")
	store := open(t, path, &boltfence.Options{NoSync: true})
	for batch := range 10 {
		seal(t, store, numbered(batch, 300), time.Hour)
	}
	seal(t, store, numbered(10, 300), time.Microsecond)
	seal(t, store, numbered(11, 300), time.Microsecond)
	stays := numbered(12, 1)
	seal(t, store, stays, 0)
	hold(t, store, numbered(13, 300))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if n, keys := entries(t, path); n != 12 || keys != 12*300 {
		t.Errorf("12 batches of 300 seals that expire made %d entries with %d keys", n, keys)
	}

	store = open(t, path, &boltfence.Options{NoSync: true})
	if n, err := store.Purge(t.Context(), namespace, 450); n != 450 || err != nil {
		t.Errorf("purged %d of at most 450: %v", n, err)
	}
	if n, err := store.Purge(t.Context(), namespace, 1_000_000); n != 150 || err != nil {
		t.Errorf("purged %d of the 150 left: %v", n, err)
	}
	if got := states(t, store, numbered(3, 300)); got[driver.Done] != 300 {
		t.Errorf("keys that live an hour: %v", got)
	}
	if got := states(t, store, append(stays, numbered(13, 300)...)); got[driver.Done] != 1 || got[driver.Pending] != 300 {
		t.Errorf("keys that live for ever: %v", got)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if n, keys := entries(t, path); n != 10 || keys != 3000 {
		t.Errorf("after the purge the index has %d entries with %d keys, want 10 and 3000", n, keys)
	}
	edit(t, path, func(tx *bbolt.Tx) error {
		if n := tx.Bucket([]byte("records/" + namespace)).Stats().KeyN; n != 3001 {
			t.Errorf("%d records are left, want 3001", n)
		}
		return nil
	})
}

// A record that was released back onto one that expires keeps an index entry,
// also when a purge passed while it was pending.
func TestPurgeAfterRelease(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "fence.bolt"), nil)
	keys := numbered(1, 3)
	var c []driver.Claim
	var held []driver.Claimed
	claimed := false
	for retention := 100 * time.Millisecond; !claimed; retention *= 4 { // on a slow machine the record is gone too soon
		if retention > time.Minute {
			t.Fatal("the record was gone before it could be claimed")
		}
		for i := range keys {
			keys[i][31]++
		}
		_, held = hold(t, store, keys)
		over := make([]driver.Transition, len(keys))
		for i := range over {
			over[i] = driver.Transition{Op: driver.HandOver, Key: keys[i], Token: held[i].Record.Token, Attempt: 2, Retention: retention}
		}
		store.Apply(t.Context(), namespace, over)
		c = claims(keys)
		for i := range c {
			c[i].Attempt = 2
		}
		held = store.Claim(t.Context(), namespace, c)
		claimed = held[0].Answer.Granted() && held[0].Record.Prior != nil
	}
	purgeUntil(t, store, func(int) bool { return time.Now().UnixMicro() > held[0].Record.Prior.Expire })
	releases := make([]driver.Transition, len(keys))
	for i := range releases {
		releases[i] = driver.Transition{Op: driver.Release, Key: keys[i], Nonce: c[i].Nonce, Token: held[i].Record.Token}
	}
	for i, a := range store.Apply(t.Context(), namespace, releases) {
		if a.Outcome != driver.OK {
			t.Errorf("release %d: %v, %v", i, a.Outcome, a.Err)
		}
	}
	purgeUntil(t, store, func(total int) bool { return total >= len(keys) })
}

func purgeUntil(t *testing.T, store *boltfence.Store, enough func(total int) bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for total := 0; ; {
		n, err := store.Purge(t.Context(), namespace, 100)
		if err != nil {
			t.Fatal(err)
		}
		if total += n; enough(total) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("purged %d in 10 s", total)
		}
	}
}

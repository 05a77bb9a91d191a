package boltfence_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence/boltfence"
	"github.com/oncefence/oncefence/fence/driver"
)

const namespace = "acme:billing"

// numbered makes the keys of a batch by its number.
func numbered(batch, n int) []driver.Digest {
	keys := make([]driver.Digest, n)
	for i := range keys {
		keys[i] = sha256.Sum256(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(batch)), uint32(i)))
	}
	return keys
}

func claims(keys []driver.Digest) []driver.Claim {
	out := make([]driver.Claim, len(keys))
	for i, key := range keys {
		out[i] = driver.Claim{Key: key, Kind: driver.KindIdempotent, Attempt: 1, Lease: time.Hour, TakeoverUntil: 1 << 52}
		_, _ = rand.Read(out[i].Nonce[:])
	}
	return out
}

func seals(claims []driver.Claim, held []driver.Claimed, retention time.Duration) []driver.Transition {
	out := make([]driver.Transition, len(claims))
	for i := range out {
		out[i] = driver.Transition{Op: driver.Seal, Key: claims[i].Key, Token: held[i].Record.Token, Attempt: 1, Retention: retention, EffectID: "e1"}
	}
	return out
}

// hold claims all keys and wants them new.
func hold(t *testing.T, store *boltfence.Store, keys []driver.Digest) ([]driver.Claim, []driver.Claimed) {
	t.Helper()
	c := claims(keys)
	out := store.Claim(t.Context(), namespace, c)
	for i := range out {
		if out[i].Err != nil || out[i].Answer != driver.New {
			t.Fatalf("claim %d: %v, %v", i, out[i].Answer, out[i].Err)
		}
	}
	return c, out
}

// seal claims and seals all keys.
func seal(t *testing.T, store *boltfence.Store, keys []driver.Digest, retention time.Duration) {
	t.Helper()
	c, held := hold(t, store, keys)
	for i, a := range store.Apply(t.Context(), namespace, seals(c, held, retention)) {
		if a.Err != nil || a.Outcome != driver.OK {
			t.Fatalf("seal %d: %v, %v", i, a.Outcome, a.Err)
		}
	}
}

func states(t *testing.T, store *boltfence.Store, keys []driver.Digest) map[driver.State]int {
	t.Helper()
	records, err := store.Get(t.Context(), namespace, keys)
	if err != nil {
		t.Fatal(err)
	}
	out := map[driver.State]int{}
	for i := range records {
		out[records[i].State]++
	}
	return out
}

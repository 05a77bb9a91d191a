package boltfence_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncefence/oncefence/fence/boltfence"
	"github.com/oncefence/oncefence/fence/driver"
)

// BenchmarkClaimSeal claims and seals batches of 512 fresh keys, each batch on
// disk before the next begins, on an empty file and on one that holds half a
// million sealed keys. Turn by turn with it goes what one would write with bbolt
// alone: set pending if absent, then done, with as few bytes as that takes
// ("words"), or with as many as the fence keeps ("same-size"). "ratio" is the
// fence's speed as a share of that.
func BenchmarkClaimSeal(b *testing.B) {
	const full = 500_000
	for _, keys := range []int{0, full} {
		for name, values := range map[string][2][]byte{
			"words":     {[]byte("pending"), []byte("done:0123456789abcdef0123456789abcdef")},
			"same-size": {make([]byte, 165), make([]byte, 110)},
		} {
			b.Run(fmt.Sprintf("keys=%d/%s", keys, name), func(b *testing.B) {
				store, db := benchFiles(b, keys/batchSize, values)
				round := keys / batchSize
				var fence, hand time.Duration
				for b.Loop() {
					begin := time.Now()
					claimSeal(b, store, round)
					middle := time.Now()
					byHand(b, db, round, values)
					fence, hand = fence+middle.Sub(begin), hand+time.Since(middle)
					round++
				}
				records := float64(b.N) * batchSize
				b.ReportMetric(records/fence.Seconds(), "fence-records/s")
				b.ReportMetric(records/hand.Seconds(), "by-hand-records/s")
				b.ReportMetric(hand.Seconds()/fence.Seconds(), "ratio")
			})
		}
	}
}

const batchSize = 512

// benchFiles makes both files with so many rounds of keys in them.
func benchFiles(b *testing.B, rounds int, values [2][]byte) (*boltfence.Store, *bbolt.DB) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "fence.bolt")
	filled, err := boltfence.OpenStore(path, &boltfence.Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "hand.bolt"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	for round := range rounds {
		claimSeal(b, filled, round)
		byHand(b, db, round, values)
	}
	if err := filled.Close(); err != nil {
		b.Fatal(err)
	}
	store, err := boltfence.OpenStore(path, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	if err := db.Sync(); err != nil {
		b.Fatal(err)
	}
	db.NoSync = false
	return store, db
}

func benchKeys(round int) []driver.Digest {
	keys := make([]driver.Digest, batchSize)
	for i := range keys {
		keys[i] = sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(round*batchSize+i)))
	}
	return keys
}

func claimSeal(b *testing.B, store *boltfence.Store, round int) {
	claims := make([]driver.Claim, batchSize)
	for i, key := range benchKeys(round) {
		claims[i] = driver.Claim{
			Key: key, Nonce: driver.Nonce(key[:16]), Kind: driver.KindIdempotent, Attempt: 1, Lease: 10 * time.Second,
			Fingerprint: driver.Fingerprint{Scheme: 1, Sum: [16]byte(key[16:])},
			Origin:      driver.Origin{Source: "kafka", Topic: "orders", Partition: 3, Offset: int64(round), Timestamp: time.Now().UnixMilli()},
		}
	}
	transitions := make([]driver.Transition, batchSize)
	for i, c := range store.Claim(b.Context(), "acme:billing", claims) {
		if c.Err != nil || c.Answer != driver.New {
			b.Fatalf("claim: %v, %v", c.Answer, c.Err)
		}
		r := &c.Record
		transitions[i] = driver.Transition{
			Op: driver.Seal, Key: claims[i].Key, Token: r.Token, Attempt: 1, Retention: 14 * 24 * time.Hour, Kind: r.Kind, Fingerprint: r.Fingerprint,
			Origin: r.Origin, FirstSeen: r.FirstSeen, EffectID: "0123456789abcdef0123456789abcdef",
		}
	}
	for _, a := range store.Apply(b.Context(), "acme:billing", transitions) {
		if a.Err != nil || a.Outcome != driver.OK {
			b.Fatalf("seal: %v, %v", a.Outcome, a.Err)
		}
	}
}

func byHand(b *testing.B, db *bbolt.DB, round int, values [2][]byte) {
	keys := benchKeys(round)
	for step, value := range values {
		err := db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("keys"))
			if err != nil {
				return err
			}
			for i := range keys {
				if step == 0 && bucket.Get(keys[i][:]) != nil {
					return fmt.Errorf("key %x is there already", keys[i])
				}
				if err := bucket.Put(keys[i][:], value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

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

// The benchmarks claim and seal batches of 512 fresh keys, each batch on disk
// before the next begins, on an empty file and on one that holds half a million
// sealed keys. ByHand is what one would write with bbolt alone: set pending if
// absent, then done.
const (
	batchSize = 512
	fullSize  = 500_000
	benchLife = 14 * 24 * time.Hour
)

func benchKeys(round int) []driver.Digest {
	keys := make([]driver.Digest, batchSize)
	for i := range keys {
		keys[i] = sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(round*batchSize+i)))
	}
	return keys
}

func report(b *testing.B) {
	b.ReportMetric(float64(b.N)*batchSize/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkClaimSeal(b *testing.B) {
	for _, full := range []int{0, fullSize} {
		b.Run(fmt.Sprintf("keys=%d", full), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "fence.bolt")
			rounds := full / batchSize
			filled, err := boltfence.OpenStore(path, &boltfence.Options{NoSync: true})
			if err != nil {
				b.Fatal(err)
			}
			for round := range rounds {
				claimSeal(b, filled, round)
			}
			if err := filled.Close(); err != nil {
				b.Fatal(err)
			}
			store, err := boltfence.OpenStore(path, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			for b.Loop() {
				claimSeal(b, store, rounds)
				rounds++
			}
			report(b)
		})
	}
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
			Op: driver.Seal, Key: claims[i].Key, Token: r.Token, Attempt: 1, Retention: benchLife, Kind: r.Kind, Fingerprint: r.Fingerprint,
			Origin: r.Origin, FirstSeen: r.FirstSeen, EffectID: "0123456789abcdef0123456789abcdef",
		}
	}
	for _, a := range store.Apply(b.Context(), "acme:billing", transitions) {
		if a.Err != nil || a.Outcome != driver.OK {
			b.Fatalf("seal: %v, %v", a.Outcome, a.Err)
		}
	}
}

// BenchmarkByHand stores either only the words, or as many bytes as the fence
// does.
func BenchmarkByHand(b *testing.B) {
	pending, done := make([]byte, 290), make([]byte, 105)
	for name, values := range map[string][2][]byte{"words": {[]byte("pending"), []byte("done:0123456789abcdef0123456789abcdef")}, "same-size": {pending, done}} {
		for _, full := range []int{0, fullSize} {
			b.Run(fmt.Sprintf("%s/keys=%d", name, full), func(b *testing.B) {
				db, err := bbolt.Open(filepath.Join(b.TempDir(), "hand.bolt"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoSync: true})
				if err != nil {
					b.Fatal(err)
				}
				defer db.Close()
				rounds := full / batchSize
				for round := range rounds {
					byHand(b, db, round, values)
				}
				db.NoSync = false
				for b.Loop() {
					byHand(b, db, rounds, values)
					rounds++
				}
				report(b)
			})
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
					return fmt.Errorf("a key twice")
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

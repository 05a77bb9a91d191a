package boltfence_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncefence/oncefence/fence/driver"
)

// edit changes a closed file by hand.
func edit(t *testing.T, path string, change func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(change), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestUnreadableRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence.bolt")
	store := open(t, path, nil)
	keys := numbered(1, 5)
	seal(t, store, keys, time.Hour)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	bad := []byte("done:e1\x00\x02 of a release to come")
	edit(t, path, func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("records/"+namespace)).Put(keys[2][:], bad)
	})
	store = open(t, path, nil)

	for i, c := range store.Claim(t.Context(), namespace, claims(keys)) {
		if i == 2 {
			if !errors.Is(c.Err, driver.ErrUnreadable) || c.Answer != driver.NoAnswer {
				t.Errorf("claim of the unreadable key: %v, %v", c.Answer, c.Err)
			}
			continue
		}
		if c.Err != nil || c.Answer != driver.Duplicate {
			t.Errorf("claim of its neighbour %d: %v, %v", i, c.Answer, c.Err)
		}
	}
	seal := driver.Transition{Op: driver.Seal, Key: keys[2], Token: 1, EffectID: "e2"}
	if a := store.Apply(t.Context(), namespace, []driver.Transition{seal})[0]; !errors.Is(a.Err, driver.ErrUnreadable) {
		t.Errorf("seal: %v, %v", a.Outcome, a.Err)
	}
	if _, err := store.Get(t.Context(), namespace, keys); !errors.Is(err, driver.ErrUnreadable) {
		t.Errorf("get: %v", err)
	}
	shown := 0
	err := store.Scan(t.Context(), namespace, driver.Filter{}, func(driver.Digest, driver.Record) bool { shown++; return true })
	if shown != 4 || !errors.Is(err, driver.ErrUnreadable) {
		t.Errorf("scan showed %d records, error %v", shown, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, path, func(tx *bbolt.Tx) error {
		if got := tx.Bucket([]byte("records/" + namespace)).Get(keys[2][:]); string(got) != string(bad) {
			t.Errorf("the unreadable record was changed to %q", got)
		}
		return nil
	})
}

func TestUnreadableMarker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence.bolt")
	store := open(t, path, nil)
	if _, err := store.Marker(t.Context(), namespace, driver.Marker{Epoch: [16]byte{1}, Partitions: map[string]int32{"orders": 3}}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	var whole []byte
	edit(t, path, func(tx *bbolt.Tx) error {
		whole = append(whole, tx.Bucket([]byte("markers")).Get([]byte("marker/"+namespace))...)
		return nil
	})
	for n := range len(whole) {
		edit(t, path, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("markers")).Put([]byte("marker/"+namespace), whole[:n])
		})
		store = open(t, path, nil)
		if m, err := store.Marker(t.Context(), namespace, driver.Marker{Epoch: [16]byte{2}}); !errors.Is(err, driver.ErrUnreadable) {
			t.Errorf("a marker cut to %d bytes of %d: %+v, %v", n, len(whole), m, err)
		}
		if out := store.Claim(t.Context(), namespace, claims(numbered(n, 1))); out[0].Err != nil {
			t.Errorf("a claim beside it: %v", out[0].Err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/boltfence"
)

// boltTarget compares with bbolt written by hand: one transaction, and with it
// one fsync, for a batch of claims and one for its seals. It works in new files
// beside the one that was named, so on the same disk.
type boltTarget struct {
	dir  string
	hand *bbolt.DB
}

func newBoltTarget(path string) (*boltTarget, error) {
	if path == "" {
		return nil, errors.New("the path is missing: bolt:PATH")
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".oncefence-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder beside %s: %w", path, err)
	}
	hand, err := bbolt.Open(filepath.Join(dir, "hand.db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoFreelistSync: true})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &boltTarget{dir: dir, hand: hand}, nil
}

func (t *boltTarget) open(context.Context) (*fence.Fence, error) {
	return boltfence.Open(filepath.Join(t.dir, "fence.db"), nil)
}

func (t *boltTarget) put(space string, from, to int, claim bool) error {
	keys := make([][]byte, 0, to-from)
	for n := from; n < to; n++ {
		digest := sha256.Sum256([]byte(space + id(n)))
		keys = append(keys, digest[:])
	}
	slices.SortFunc(keys, bytes.Compare)
	return t.hand.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists([]byte("fence"))
		if err != nil {
			return err
		}
		for _, key := range keys {
			value := []byte("pending")
			if !claim {
				value = append([]byte("done:"), key...)
			} else if bucket.Get(key) != nil {
				return errors.New("a key of the benchmark exists")
			}
			if err := bucket.Put(key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *boltTarget) floor(_ context.Context, space string, records, batch int) error {
	for start := 0; start < records; start += batch {
		end := min(start+batch, records)
		if err := errors.Join(t.put(space, start, end, true), t.put(space, start, end, false)); err != nil {
			return err
		}
	}
	return nil
}

func (t *boltTarget) naive(_ context.Context, space string, records int) error {
	for n := range records {
		if err := errors.Join(t.put(space, n, n+1, true), t.put(space, n, n+1, false)); err != nil {
			return err
		}
	}
	return nil
}

func (t *boltTarget) size(context.Context) (int64, error) {
	info, err := os.Stat(filepath.Join(t.dir, "fence.db"))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (t *boltTarget) clean(context.Context) error {
	return errors.Join(t.hand.Close(), os.RemoveAll(t.dir))
}

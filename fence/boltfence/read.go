package boltfence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/oncefence/oncefence/fence/driver"
)

// scanStep is how many keys a scan reads in one transaction.
const scanStep = 256

// view reads in a transaction of its own, which must be short.
func (s *Store) view(ctx context.Context, namespace string, read func(open, records *bbolt.Bucket, now int64) error) error {
	if err := s.check(ctx, namespace); err != nil {
		return err
	}
	err := s.db.View(func(tx *bbolt.Tx) error {
		open, records := tx.Bucket(openBucket(namespace)), tx.Bucket(recordsBucket(namespace))
		if open == nil || records == nil {
			return nil // nothing was ever written
		}
		return read(open, records, driver.Micros(time.Now()))
	})
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return driver.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("read fence file %s: %w", s.path, err)
	}
	return nil
}

// Get implements driver.Store. One record that cannot be read fails the call.
func (s *Store) Get(ctx context.Context, namespace string, keys []driver.Digest) ([]driver.Record, error) {
	out := make([]driver.Record, len(keys))
	err := s.view(ctx, namespace, func(open, records *bbolt.Bucket, now int64) error {
		for i := range keys {
			value := open.Get(keys[i][:])
			if value == nil {
				value = records.Get(keys[i][:])
			}
			r, err := parse(&keys[i], value)
			if err != nil {
				return err
			}
			if r != nil && !r.Expired(now) {
				out[i] = *r
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Scan implements driver.Store. It goes through the keys in order, over both
// buckets together, so that it does not miss a record that moves from one to the
// other meanwhile. It reads in steps, so yield may take its time
// and may call the store. Records that cannot be read are passed over; the first
// of them is the error at the end.
func (s *Store) Scan(ctx context.Context, namespace string, filter driver.Filter, yield func(driver.Digest, driver.Record) bool) error {
	type row struct {
		key    driver.Digest
		record driver.Record
	}
	var next []byte // the first key that was not read yet
	var unreadable error
	rows := make([]row, 0, scanStep)
	for more := true; more; {
		rows, more = rows[:0], false
		err := s.view(ctx, namespace, func(open, records *bbolt.Bucket, now int64) error {
			both := walk(open, records, next)
			key, value := both.next()
			for n := 0; key != nil; key, value = both.next() {
				if n++; n > scanStep {
					next, more = bytes.Clone(key), true
					break
				}
				if len(key) != len(driver.Digest{}) {
					continue
				}
				digest := driver.Digest(key)
				r, err := parse(&digest, value)
				if err != nil && unreadable == nil {
					unreadable = err
				}
				if r != nil && filter.Match(r, now) {
					rows = append(rows, row{digest, *r})
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i := range rows {
			if !yield(rows[i].key, rows[i].record) {
				return nil
			}
		}
	}
	if unreadable != nil {
		return fmt.Errorf("read fence file %s: %w", s.path, unreadable)
	}
	return nil
}

// walker goes through two buckets in the order of their keys.
type walker struct {
	cursors      [2]*bbolt.Cursor
	keys, values [2][]byte
}

func walk(open, records *bbolt.Bucket, from []byte) *walker {
	w := &walker{cursors: [2]*bbolt.Cursor{open.Cursor(), records.Cursor()}}
	for i, c := range w.cursors {
		w.keys[i], w.values[i] = c.Seek(from)
	}
	return w
}

// next gives the lowest key; nil is the end.
func (w *walker) next() (key, value []byte) {
	i := 0
	if w.keys[0] == nil || w.keys[1] != nil && bytes.Compare(w.keys[1], w.keys[0]) < 0 {
		i = 1
	}
	key, value = w.keys[i], w.values[i]
	if key != nil {
		w.keys[i], w.values[i] = w.cursors[i].Next()
	}
	return key, value
}

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
func (s *Store) view(ctx context.Context, namespace string, read func(records *bbolt.Bucket, now int64) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := checkNamespace(namespace); err != nil {
		return err
	}
	if s.isClosed() {
		return driver.ErrClosed
	}
	err := s.db.View(func(tx *bbolt.Tx) error {
		if records := tx.Bucket(recordsBucket(namespace)); records != nil {
			return read(records, driver.Micros(time.Now()))
		}
		return nil
	})
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return driver.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("read fence file %s: %w", s.path, err)
	}
	return nil
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Get implements driver.Store. One record that cannot be read fails the call.
func (s *Store) Get(ctx context.Context, namespace string, keys []driver.Digest) ([]driver.Record, error) {
	out := make([]driver.Record, len(keys))
	err := s.view(ctx, namespace, func(records *bbolt.Bucket, now int64) error {
		for i := range keys {
			r, err := parse(&keys[i], records.Get(keys[i][:]))
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

// Scan implements driver.Store. It reads in steps, so yield may take its time
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
		err := s.view(ctx, namespace, func(records *bbolt.Bucket, now int64) error {
			c := records.Cursor()
			key, value := c.Seek(next)
			for n := 0; key != nil; key, value = c.Next() {
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

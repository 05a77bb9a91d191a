package boltfence

import (
	"context"
	"encoding/binary"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/oncefence/oncefence/fence/driver"
)

// The expiry index: one entry for the records of a transaction that expire in
// the same millisecond, rounded up. A record that is written again gets another
// entry; the old one then finds it not expired and is dropped.

// expiring gathers the digests of one entry.
type expiring struct {
	millis int64
	keys   []byte
}

// purgeStep is how many keys of the index one purge transaction looks at.
const purgeStep = 1000

// expires notes that r, just written, expires.
func (s *space) expires(key *driver.Digest, r *driver.Record) {
	if r.Expire == 0 || !r.Expired(r.Expire) { // pending, or doubt that stays
		return
	}
	millis := (r.Expire + 999) / 1000
	i := slices.IndexFunc(s.expiring, func(e expiring) bool { return e.millis == millis })
	if i < 0 {
		i = len(s.expiring)
		s.expiring = append(s.expiring, expiring{millis: millis})
	}
	s.expiring[i].keys = append(s.expiring[i].keys, key[:]...)
}

// index writes the gathered entries.
func (s *space) index() error {
	if len(s.expiring) == 0 {
		return nil
	}
	bucket, err := s.t.tx.CreateBucketIfNotExists(expiryBucket(s.namespace))
	if err != nil {
		return err
	}
	bucket.FillPercent = 0.9 // entries are appended, nearly in order
	for _, e := range s.expiring {
		sequence, err := bucket.NextSequence()
		if err != nil {
			return err
		}
		key := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(e.millis)), sequence)
		if err := bucket.Put(key, e.keys); err != nil {
			return err
		}
	}
	return nil
}

// Purge implements driver.Store. It looks at the due entries of the expiry
// index only, in transactions of a bounded size, so that claims are not held up.
func (s *Store) Purge(ctx context.Context, namespace string, limit int) (removed int, err error) {
	if err := s.check(ctx, namespace); err != nil {
		return 0, err
	}
	for more := true; more && removed < limit; {
		n, step := 0, min(purgeStep, limit-removed)
		err := s.apply(ctx, namespace, step, false, func(space *space) (err error) {
			n, more, err = space.purge(step)
			return err
		})
		if err != nil {
			return removed, err
		}
		removed += n
	}
	return removed, nil
}

// purge looks at no more than limit keys of due entries. more says that it did
// not come to the end.
func (s *space) purge(limit int) (removed int, more bool, err error) {
	bucket := s.t.tx.Bucket(expiryBucket(s.namespace))
	if bucket == nil {
		return 0, false, nil
	}
	for looked := 0; ; {
		entry, value := bucket.Cursor().First()
		if entry == nil || len(entry) != 16 || int64(binary.BigEndian.Uint64(entry))*1000 > s.t.now {
			return removed, false, nil
		}
		if looked == limit {
			return removed, true, nil
		}
		s.t.changed = true
		entry, value = slices.Clone(entry), slices.Clone(value)
		n := min(limit-looked, len(value)/len(driver.Digest{}))
		looked += n
		for range n {
			key := driver.Digest(value)
			value = value[len(key):]
			found, err := s.get(&key)
			if err != nil || found == nil || !found.Expired(s.t.now) {
				continue // unreadable, gone, or alive again
			}
			if err := s.records.Delete(key[:]); err != nil {
				return removed, false, err
			}
			removed++
		}
		if err := shorten(bucket, entry, value); err != nil {
			return removed, false, err
		}
	}
}

// shorten keeps the rest of an entry, or deletes it.
func shorten(bucket *bbolt.Bucket, entry, rest []byte) error {
	if len(rest) >= len(driver.Digest{}) {
		return bucket.Put(entry, rest)
	}
	return bucket.Delete(entry)
}

package boltfence

import (
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/oncefence/oncefence/fence/driver"
)

// transaction is what the batches of one commit share.
type transaction struct {
	tx      *bbolt.Tx
	now     int64
	changed bool
	spaces  []*space
	// pack holds the packed records until the commit. bbolt refers to them, so
	// it is never moved: a full one is left behind and a new one begun.
	pack []byte
}

const packSize = 1 << 18

// space is one namespace within a transaction.
type space struct {
	t         *transaction
	namespace string
	open      *bbolt.Bucket // nil: nothing was ever written
	records   *bbolt.Bucket
	tokens    uint64
	expiring  []expiring
}

func (t *transaction) space(namespace string) *space {
	for _, s := range t.spaces {
		if s.namespace == namespace {
			return s
		}
	}
	s := &space{t: t, namespace: namespace, open: t.tx.Bucket(openBucket(namespace)), records: t.tx.Bucket(recordsBucket(namespace))}
	if s.open != nil {
		s.tokens = s.open.Sequence()
	}
	t.spaces = append(t.spaces, s)
	return s
}

// get reads a record; nil means none.
func (s *space) get(key *driver.Digest) (*driver.Record, error) {
	if s.open == nil {
		return nil, nil
	}
	value := s.open.Get(key[:])
	if value == nil {
		value = s.records.Get(key[:])
	}
	return parse(key, value)
}

func parse(key *driver.Digest, value []byte) (*driver.Record, error) {
	if value == nil {
		return nil, nil
	}
	r, err := driver.ParseRecord(value)
	if err != nil {
		return nil, fmt.Errorf("key %x: %w", *key, err)
	}
	return &r, nil
}

// put writes next in place of found.
func (s *space) put(key *driver.Digest, found, next *driver.Record) error {
	if s.open == nil {
		open, err := s.t.tx.CreateBucketIfNotExists(openBucket(s.namespace))
		if err != nil {
			return err
		}
		records, err := s.t.tx.CreateBucketIfNotExists(recordsBucket(s.namespace))
		if err != nil {
			return err
		}
		s.open, s.records = open, records
	}
	s.t.changed = true
	bucket := s.bucket(next)
	if found != nil && s.bucket(found) != bucket {
		if err := s.bucket(found).Delete(key[:]); err != nil {
			return err
		}
	}
	if err := bucket.Put(key[:], s.t.packed(next)); err != nil {
		return err
	}
	s.expires(key, next)
	return nil
}

// bucket is where r has its place.
func (s *space) bucket(r *driver.Record) *bbolt.Bucket {
	if r.State == driver.Pending {
		return s.open
	}
	return s.records
}

func (t *transaction) packed(r *driver.Record) []byte {
	if cap(t.pack)-len(t.pack) < packSize/64 {
		t.pack = make([]byte, 0, packSize)
	}
	start := len(t.pack)
	t.pack = driver.AppendRecord(t.pack, r)
	return t.pack[start:len(t.pack):len(t.pack)]
}

// token makes a fencing token above prev and above all of the namespace.
func (s *space) token(prev uint64) uint64 {
	s.tokens = max(s.tokens, prev) + 1
	return s.tokens
}

// finish writes what the batches gathered: tokens and the expiry index.
func (t *transaction) finish() error {
	for _, s := range t.spaces {
		if s.open != nil && s.tokens != s.open.Sequence() {
			if err := s.open.SetSequence(s.tokens); err != nil {
				return err
			}
		}
		if err := s.index(); err != nil {
			return err
		}
	}
	return nil
}

package boltfence

import (
	"errors"
	"fmt"
	"strconv"

	"go.etcd.io/bbolt"
)

// fileFormat is the version of the buckets' layout. Records and markers carry
// versions of their own.
const fileFormat = 1

var (
	metaBucket    = []byte("oncefence")
	formatKey     = []byte("format")
	markersBucket = []byte("markers")
)

func openBucket(namespace string) []byte    { return []byte("open/" + namespace) }
func recordsBucket(namespace string) []byte { return []byte("records/" + namespace) }
func expiryBucket(namespace string) []byte  { return []byte("expiry/" + namespace) }

// checkNamespace refuses a namespace that cannot name a bucket.
func checkNamespace(namespace string) error {
	if limit := bbolt.MaxKeySize - len("records/"); len(namespace) > limit {
		return fmt.Errorf("namespace of %d bytes: a bolt fence takes at most %d", len(namespace), limit)
	}
	return nil
}

// checkFormat marks an empty file as a fence and refuses one that is something
// else.
func checkFormat(db *bbolt.DB) error {
	fresh := false
	err := db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(metaBucket)
		if meta == nil {
			if first, _ := tx.Cursor().First(); first != nil {
				return fmt.Errorf("it is a bbolt file of another program: its first bucket is %q", first)
			}
			fresh = true
			return nil
		}
		if format := meta.Get(formatKey); string(format) != strconv.Itoa(fileFormat) {
			return fmt.Errorf("its file format is %q, this program reads %d: use the release that wrote it, or another file", format, fileFormat)
		}
		return nil
	})
	if err != nil || !fresh {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucketIfNotExists(metaBucket)
		if err != nil {
			return err
		}
		_, markersErr := tx.CreateBucketIfNotExists(markersBucket)
		return errors.Join(meta.Put(formatKey, []byte(strconv.Itoa(fileFormat))), markersErr)
	})
}

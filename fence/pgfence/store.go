package pgfence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// How long a transaction of the store waits for a row that another one has
// locked, how long the server keeps one whose client has fallen silent, and how
// long a rollback may take.
const (
	lockTime     = 200 * time.Millisecond
	silentTime   = 30 * time.Second
	rollbackTime = 5 * time.Second
)

// maxTries is how often a batch is tried while others are in its way.
const maxTries = 4

// Store is a driver.Store on PostgreSQL, and a driver.Transactor: effects write
// in the transaction of their fence.
type Store struct {
	links     links
	schema    string
	noMigrate bool
	sql       *statements
	closed    atomic.Bool
	prepared  atomic.Bool
	migrating chan struct{}

	transactions chan struct{} // bounds those of effects; nil: no bound
	unanswered   nonces
}

var _ driver.Store = (*Store)(nil)

// Close implements driver.Store. It leaves the user's pool open.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

// check refuses calls that cannot be served, and sees to the schema.
func (s *Store) check(ctx context.Context, namespace string) error {
	if s.closed.Load() {
		return driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if namespace == "" || len(namespace) > 1024 || strings.ContainsRune(namespace, 0) {
		return fmt.Errorf("namespace of %d bytes: it must have 1 to 1024, none of them zero", len(namespace))
	}
	if err := s.prepare(ctx); err != nil {
		return describe(ctx, nothingWritten, err)
	}
	return nil
}

// namespaceID is the number of a namespace.
func namespaceID(namespace string) int64 {
	sum := sha256.Sum256([]byte(namespace))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// lockKey is the advisory lock of a key.
func lockKey(id int64, key *driver.Digest) int64 {
	return int64(binary.BigEndian.Uint64(key[:])) ^ id
}

// sorted is the order of a batch by key, in which rows are locked.
func sorted(n int, key func(i int) *driver.Digest) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(key(a)[:], key(b)[:]) })
	return order
}

// again runs a transaction until others are no longer in its way.
func again(ctx context.Context, run func() error) error {
	for try := 1; ; try++ {
		err := run()
		if err == nil || try == maxTries || !worthAgain(err) || ctx.Err() != nil {
			return err
		}
	}
}

// errBusy: a row is locked for longer than a batch waits.
var errBusy = errors.New("PostgreSQL: nothing was written: another transaction keeps the key's row locked: send it again")

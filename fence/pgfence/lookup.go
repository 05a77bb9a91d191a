package pgfence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// lookWait is the pause between two attempts to find out what became of a commit.
const lookWait = 100 * time.Millisecond

// errNotCommitted: the commit did not happen.
var errNotCommitted = errors.New("PostgreSQL: nothing was written: the connection was lost before the commit")

// lookUp finds out what became of a commit whose answer did not come: nil, it
// happened, errNotCommitted, it did not, or cause, nobody could be asked in time.
func (w *shared) lookUp(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			w.s.unanswered.add(w.claims)
			return cause
		}
		committed, err := w.look(ctx)
		if err == nil && committed {
			return nil
		}
		if err == nil {
			return fmt.Errorf("%w: %w", errNotCommitted, cause)
		}
		timer.Reset(lookWait)
	}
}

// look waits for the keys' locks, which the lost transaction holds until it has
// ended, and compares what stands there with what it was to write. Its records
// became visible together, so one that is there tells of all.
func (w *shared) look(ctx context.Context) (committed bool, err error) {
	wrote := make(map[string][]byte, len(w.keys))
	for _, r := range []*rows{&w.added, &w.changed} {
		for i := range r.digests {
			wrote[string(r.digests[i])] = r.data[i]
		}
	}
	err = w.s.links.use(ctx, func(conn *pgx.Conn) error {
		locks := make([]int64, len(w.order))
		for n, i := range w.order {
			locks[n] = lockKey(w.id, &w.claims[i].Key)
		}
		b := &pgx.Batch{}
		b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
		b.Queue(w.s.sql.await, locks)
		b.Queue(w.s.sql.get, w.id, w.keys).Query(func(rows pgx.Rows) error {
			var digest, data []byte
			var now int64
			var replica bool
			for rows.Next() {
				if err := rows.Scan(&digest, &data, &now, &replica); err != nil {
					return err
				}
				if replica {
					return errReplica
				}
				want, ours := wrote[string(digest)]
				committed = committed || ours && bytes.Equal(want, data)
			}
			return rows.Err()
		})
		b.Queue("ROLLBACK")
		return send(ctx, conn, b)
	})
	return committed, err
}

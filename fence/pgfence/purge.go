package pgfence

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/fence/driver"
)

const digestLen = len(driver.Digest{})

// Purge implements driver.Store. It reads only what is due, in transactions of
// a bounded size, and may run in several processes at once.
func (s *Store) Purge(ctx context.Context, namespace string, limit int) (removed int, err error) {
	if err := s.check(ctx, namespace); err != nil {
		return 0, err
	}
	for more := true; more && removed < limit; {
		n, committing := 0, false
		err := again(ctx, func() error {
			return s.links.use(ctx, func(conn *pgx.Conn) (err error) {
				n, more, committing, err = s.purge(ctx, conn, namespaceID(namespace), limit-removed)
				return err
			})
		})
		if err != nil {
			return removed, outcome(ctx, committing, err)
		}
		removed += n
	}
	return removed, nil
}

// entry is a row of the table expiry.
type entry struct {
	place   string
	digests []byte
}

// purge looks at no more than limit keys of due entries, in one transaction.
// more says that it did not come to the end.
func (s *Store) purge(ctx context.Context, conn *pgx.Conn, id int64, limit int) (removed int, more, committing bool, err error) {
	due, now, err := s.due(ctx, conn, id)
	if err != nil {
		return 0, false, false, err
	}
	var keys [][]byte
	b := &pgx.Batch{}
	for _, e := range due {
		n := min(len(e.digests)/digestLen, limit-len(keys))
		for i := range n {
			keys = append(keys, e.digests[i*digestLen:(i+1)*digestLen])
		}
		if rest := e.digests[n*digestLen:]; len(rest) >= digestLen {
			b.Queue(s.sql.listRest, e.place, rest)
			break
		}
		b.Queue(s.sql.unlist, e.place)
	}
	if len(keys) == 0 && b.Len() == 0 {
		return 0, false, false, nil // the transaction is rolled back
	}
	b.Queue(s.sql.doomed, id, keys, now) // locks them in order
	b.Queue(s.sql.remove, id, keys, now).Query(func(rows pgx.Rows) error {
		rows.Close()
		removed = int(rows.CommandTag().RowsAffected())
		return rows.Err()
	})
	b.Queue("COMMIT")
	return removed, true, true, send(ctx, conn, b)
}

// due begins a transaction and takes the first entries that are due and that no
// other purge has.
func (s *Store) due(ctx context.Context, conn *pgx.Conn, id int64) (entries []entry, now int64, err error) {
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
	s.limits(b, lockTime, silentTime)
	b.Queue(s.sql.due, id).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var e entry
			if err := rows.Scan(&e.place, &e.digests, &now); err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return rows.Err()
	})
	return entries, now, send(ctx, conn, b)
}

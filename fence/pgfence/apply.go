package pgfence

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/fence/driver"
)

// maxTransitions is the most transitions in one transaction.
const maxTransitions = 1024

// Apply implements driver.Store: two round trips for up to 1024 transitions. It
// locks rows, not keys, so it takes no part of the server's lock table. An item
// whose row a running effect's transaction keeps locked fails by itself.
func (s *Store) Apply(ctx context.Context, namespace string, transitions []driver.Transition) []driver.Applied {
	out := make([]driver.Applied, len(transitions))
	if len(transitions) == 0 {
		return out
	}
	if err := s.check(ctx, namespace); err != nil {
		return appliesFailed(out, err)
	}
	for start := 0; start < len(transitions); start += maxTransitions {
		end := min(start+maxTransitions, len(transitions))
		s.apply(ctx, namespace, transitions[start:end], out[start:end])
	}
	return out
}

func appliesFailed(out []driver.Applied, err error) []driver.Applied {
	for i := range out {
		out[i] = driver.Applied{Err: err}
	}
	return out
}

func (s *Store) apply(ctx context.Context, namespace string, transitions []driver.Transition, out []driver.Applied) {
	order := sorted(len(transitions), func(i int) *driver.Digest { return &transitions[i].Key })
	keys := make([][]byte, len(order))
	for n, i := range order {
		keys[n] = transitions[i].Key[:]
	}
	committing, around := false, false
	err := again(ctx, func() error {
		return s.links.use(ctx, func(conn *pgx.Conn) (err error) {
			t := s.begin(namespace, keys)
			committing = false
			busy, err := t.lockRows(ctx, conn, around)
			if code(err) == codeLockTimeout && !around { // go around the rows that are locked
				around = true
				rollback(ctx, conn)
				busy, err = t.lockRows(ctx, conn, around)
			}
			if err != nil {
				return err
			}
			for _, i := range order {
				key := &transitions[i].Key
				found := t.found[*key]
				switch {
				case busy[*key]:
					out[i] = driver.Applied{Err: errBusy, Now: t.now}
					continue
				case found.err != nil:
					out[i] = driver.Applied{Err: found.err, Now: t.now}
					continue
				}
				next, answer := transitions[i].Decide(found.record, t.now)
				if next != nil {
					t.put(key, found.record != nil, next)
				}
				out[i] = answer
			}
			committing, err = t.finish(ctx, conn)
			return err
		})
	})
	if err != nil {
		appliesFailed(out, outcome(ctx, committing, err))
	}
}

// lockRows begins the transaction, locks the rows of the batch and reads them
// and the clock. With around, rows that others keep locked are told instead of
// waited for.
func (t *transaction) lockRows(ctx context.Context, conn *pgx.Conn, around bool) (busy map[driver.Digest]bool, err error) {
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
	t.s.limits(b, lockTime, silentTime)
	if around {
		t.scan(b, t.s.sql.rowsFree, t.id, t.keys)
		b.Queue(t.s.sql.visible, t.id, t.keys).Query(func(rows pgx.Rows) error {
			busy = make(map[driver.Digest]bool)
			var digest []byte
			for rows.Next() {
				if err := rows.Scan(&digest); err != nil {
					return err
				}
				if _, locked := t.found[driver.Digest(digest)]; !locked {
					busy[driver.Digest(digest)] = true
				}
			}
			return rows.Err()
		})
	} else {
		t.scan(b, t.s.sql.rows, t.id, t.keys)
	}
	b.Queue(t.s.sql.time).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&t.now)
		t.read = time.Now()
		return err
	})
	return busy, send(ctx, conn, b)
}

package pgfence

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errNotYours answers an effect that would end the transaction.
var errNotYours = errors.New("the transaction of the effect, its claim and its seal ends after the effect has returned: return an error to have the effect's writes rolled back")

// effectTx is what effects over a pgx pool are given: a transaction without its
// end. A transaction begun in it (a savepoint) is the effect's own.
type effectTx struct{ pgx.Tx }

// Commit is not the effect's: it returns an error and does nothing.
func (effectTx) Commit(context.Context) error { return errNotYours }

// Rollback is not the effect's: it returns an error and does nothing.
func (effectTx) Rollback(context.Context) error { return errNotYours }

// poolHeld is a connection of a pgx pool.
type poolHeld struct {
	conn *pgxpool.Conn
	tx   pgx.Tx
}

func (l *poolLinks) hold(ctx context.Context) (held, error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return nil, unsent(err)
	}
	return &poolHeld{conn: conn}, nil
}

func (*poolLinks) sample() any { return (*effectTx)(nil) }

// begin is one round trip.
func (h *poolHeld) begin(ctx context.Context, queue func(b *pgx.Batch)) error {
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	queue(b)
	results := h.conn.SendBatch(ctx, b)
	h.tx = results.Tx()
	return results.Close()
}

func (h *poolHeld) handle() any { return &effectTx{h.tx} }

func (h *poolHeld) with(f func(conn *pgx.Conn) error) error { return f(h.conn.Conn()) }

// commit is one round trip.
func (h *poolHeld) commit(ctx context.Context, queue func(b *pgx.Batch)) error {
	b := &pgx.Batch{}
	queue(b)
	b.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() == "ROLLBACK" {
			return pgx.ErrTxCommitRollback
		}
		return nil
	})
	return send(ctx, h.conn.Conn(), b)
}

func (h *poolHeld) free(ctx context.Context) {
	rollback(ctx, h.conn.Conn())
	h.conn.Release()
}

// sqlHeld is a connection of a *sql.DB over pgx.
type sqlHeld struct {
	conn *sql.Conn
	tx   *sql.Tx
	cut  context.CancelFunc // ends the transaction's own context
}

func (l *sqlLinks) hold(ctx context.Context) (held, error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, unsent(err)
	}
	return &sqlHeld{conn: conn, cut: func() {}}, nil
}

func (*sqlLinks) sample() any { return (*sql.Tx)(nil) }

// begin gives the transaction a context of its own: database/sql rolls back when
// it ends, and commits under it.
func (h *sqlHeld) begin(ctx context.Context, queue func(b *pgx.Batch)) (err error) {
	own, cut := context.WithCancel(context.WithoutCancel(ctx))
	h.cut = cut
	defer context.AfterFunc(ctx, cut)()
	h.tx, err = h.conn.BeginTx(own, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return unsent(err)
	}
	return h.send(ctx, queue)
}

func (h *sqlHeld) send(ctx context.Context, queue func(b *pgx.Batch)) error {
	b := &pgx.Batch{}
	queue(b)
	return h.with(func(conn *pgx.Conn) error { return send(ctx, conn, b) })
}

func (h *sqlHeld) handle() any { return h.tx }

func (h *sqlHeld) with(f func(conn *pgx.Conn) error) error { return raw(h.conn, f) }

func (h *sqlHeld) commit(ctx context.Context, queue func(b *pgx.Batch)) error {
	if err := h.send(ctx, queue); code(err) != "" {
		return err
	} else if err != nil {
		return unsent(err) // the commit was not
	}
	defer context.AfterFunc(ctx, h.cut)()
	return h.tx.Commit()
}

func (h *sqlHeld) free(ctx context.Context) {
	if h.tx != nil {
		_ = h.tx.Rollback()
	}
	h.cut()
	_ = raw(h.conn, func(conn *pgx.Conn) error {
		rollback(ctx, conn)
		return nil
	})
	_ = h.conn.Close()
}

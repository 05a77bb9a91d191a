package pgfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// links hands out the user's connections.
type links interface {
	// use lends a connection to f. One that f leaves inside a transaction is
	// rolled back or closed.
	use(ctx context.Context, f func(conn *pgx.Conn) error) error
	// hold lends a connection until it is given back.
	hold(ctx context.Context) (held, error)
	// sample is a nil of what effects are given.
	sample() any
}

// held is a connection that a transactional effect works on.
type held interface {
	// begin starts a transaction, read committed, and runs what queue queues in it.
	begin(ctx context.Context, queue func(b *pgx.Batch)) error
	// handle is what effects are given: the transaction, without its end.
	handle() any
	// with lends the connection to f, also within the transaction.
	with(f func(conn *pgx.Conn) error) error
	// commit runs what queue queues and commits. Its error is the first one.
	commit(ctx context.Context, queue func(b *pgx.Batch)) error
	// free rolls back what is open and gives the connection back.
	free(ctx context.Context)
}

// queryer is what a connection and a transaction have in common.
type queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// poolLinks are those of a pgx pool.
type poolLinks struct{ pool *pgxpool.Pool }

func (l *poolLinks) use(ctx context.Context, f func(conn *pgx.Conn) error) error {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return unsent(err)
	}
	defer conn.Release()
	defer func() { rollback(ctx, conn.Conn()) }()
	return f(conn.Conn())
}

// rollback ends a transaction that was left open, where the connection still
// answers; if it does not, whoever takes it back closes it.
func rollback(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().IsBusy() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	_, _ = conn.Exec(ctx, "ROLLBACK") // a failure closes the connection, which is a rollback too
}

// sqlLinks are those of a *sql.DB over pgx.
type sqlLinks struct{ db *sql.DB }

// checkDriver refuses a *sql.DB over anything but pgx.
func checkDriver(db *sql.DB) error {
	if _, ours := db.Driver().(*stdlib.Driver); !ours {
		return fmt.Errorf(`pgfence: the *sql.DB uses the driver %T: open it with sql.Open("pgx", url) and github.com/jackc/pgx/v5/stdlib`, db.Driver())
	}
	return nil
}

func (l *sqlLinks) use(ctx context.Context, f func(conn *pgx.Conn) error) error {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return unsent(err)
	}
	defer func() { _ = conn.Close() }()
	return raw(conn, func(conn *pgx.Conn) error {
		defer rollback(ctx, conn)
		return f(conn)
	})
}

// raw lends the pgx connection below a database/sql one.
func raw(conn *sql.Conn, f func(conn *pgx.Conn) error) error {
	var failed error
	err := conn.Raw(func(driverConn any) error {
		ours, ok := driverConn.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("pgfence: the connection is a %T, not pgx's: do not wrap the driver of the *sql.DB", driverConn)
		}
		failed = f(ours.Conn())
		return nil // not f's: database/sql would close the connection for some
	})
	return errors.Join(err, failed)
}

// unsent marks an error that came before anything was sent.
func unsent(err error) error {
	if err == nil || pgconn.SafeToRetry(err) {
		return err
	}
	return &unsentError{err}
}

type unsentError struct{ error }

func (e *unsentError) Unwrap() error     { return e.error }
func (e *unsentError) SafeToRetry() bool { return true }

package pgfence

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/fence/driver"
)

var _ driver.Tx = (*shared)(nil)

// Conditions that show a transaction that is not ours any more: no savepoint of
// that name, and none at all outside a transaction.
const (
	codeNoSavepoint   = "3B001"
	codeNoTransaction = "25P01"
)

func endedCode(err error) bool {
	return code(err) == codeNoSavepoint || code(err) == codeNoTransaction
}

// Handle implements driver.Tx.
func (w *shared) Handle() any { return w.conn.handle() }

// Check implements driver.Tx.
func (w *shared) Check() error {
	if w.ended {
		return driver.ErrTxEnded
	}
	return w.conn.with(func(conn *pgx.Conn) error {
		switch {
		case conn.IsClosed():
			return errors.New("the connection of the transaction is lost")
		case conn.PgConn().IsBusy():
			return errors.New("the effect has left rows open: close them before it returns")
		}
		switch conn.PgConn().TxStatus() {
		case 'T':
			return nil
		case 'E':
			return driver.ErrTxFailed
		}
		w.ended = true
		return driver.ErrTxEnded
	})
}

// Savepoint implements driver.Tx, in one round trip; the first came with the
// beginning.
func (w *shared) Savepoint(ctx context.Context) error {
	if w.fresh {
		w.fresh = false
		return nil
	}
	return w.exec(ctx, "RELEASE SAVEPOINT oncefence; SAVEPOINT oncefence")
}

// Rollback implements driver.Tx, in one round trip.
func (w *shared) Rollback(ctx context.Context) error {
	return w.exec(ctx, "ROLLBACK TO SAVEPOINT oncefence")
}

func (w *shared) exec(ctx context.Context, sql string) error {
	err := w.conn.with(func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
	if endedCode(err) {
		w.ended = true
		return fmt.Errorf("%w: %w", driver.ErrTxEnded, err)
	}
	return err
}

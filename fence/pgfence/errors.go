package pgfence

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// Conditions of PostgreSQL that have a meaning here.
const (
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeUnique        = "23505"
	codeLockTimeout   = "55P03"
	codeSharedMemory  = "53200"
	codeReadOnly      = "25006"
)

// code is the SQLSTATE of an error of the server, "" for others.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// refused reports whether err proves that a transaction that was to be committed
// was not: nothing was sent, or the server refused a statement or the commit. A
// FATAL is no proof: a server that shuts down says so after a commit that it no
// longer wanted to wait for its replicas with, too.
func refused(err error) bool {
	if pgconn.SafeToRetry(err) {
		return true
	}
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized != "FATAL" && pg.SeverityUnlocalized != "PANIC" && pg.Severity != "FATAL" && pg.Severity != "PANIC"
}

// worthAgain reports whether a transaction that was refused may pass at once:
// others were in its way.
func worthAgain(err error) bool {
	switch code(err) {
	case codeSerialization, codeDeadlock, codeUnique:
		return refused(err)
	}
	return false
}

// describe says what became of a batch that failed, and what to do.
func describe(ctx context.Context, what string, err error) error {
	hint := ""
	switch code(err) {
	case codeSharedMemory:
		hint = " (its lock table is full: raise max_locks_per_transaction, or lower consumer.Options.BatchSize or the number of members)"
	case codeReadOnly:
		hint = " (the server is read-only: connect to the primary, target_session_attrs=read-write)"
	case codeLockTimeout:
		hint = " (a transaction that runs an effect, or somebody's own session, keeps a row locked)"
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("%s: %w%s", what, err, hint)
}

const (
	nothingWritten = "PostgreSQL: nothing was written"
	notKnown       = "PostgreSQL: it is not known whether the batch was written"
)

// outcome describes an error of a transaction that changes records.
func outcome(ctx context.Context, committing bool, err error) error {
	if committing && !refused(err) {
		return describe(ctx, notKnown, err)
	}
	return describe(ctx, nothingWritten, err)
}

package effect

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// DefaultTransaction is how many records share one transaction where the
// function takes one at a time.
const DefaultTransaction = 32

// TransactionalOptions are the options of Transactional and
// TransactionalBatch; nil is the same as the zero value.
type TransactionalOptions struct {
	// MaxRunTime is how long one run may take; its transaction is rolled back
	// then. 0: DefaultMaxRunTime (5 minutes). Negative is refused. Records that
	// share a transaction with others may be given half a second more.
	MaxRunTime time.Duration
	// MaxBatch is the most records that share one transaction. 0:
	// DefaultTransaction (32) for a function on one record, DefaultMaxBatch (100)
	// for one on several. Negative is refused. 1 gives every record a transaction
	// of its own. A transaction takes no further record after half a second.
	MaxBatch int
}

// Transactional makes an effect that writes to the database of its fence: the
// claim, what f writes through tx, and the seal become visible in one commit, or
// none of them does. It is never in doubt; the promise is exactly once. TX is
// what the fence's store gives: pgx.Tx over pgfence.New, *sql.Tx over
// pgfence.NewSQL. The consumer refuses a fence that gives something else.
//
//	charge := effect.Transactional(func(ctx context.Context, tx pgx.Tx, in effect.Input) (effect.Receipt, error) {
//		_, err := tx.Exec(ctx, "INSERT INTO charges (order_id, ...) VALUES ($1, ...)", ...)
//		return effect.Receipt{}, err
//	}, nil)
//
// Each record runs in a savepoint: any error, a panic included, rolls back what
// f wrote for it, and not its neighbours. Nothing was applied then, so an error
// that is not Permanent is temporary; the outcome of the attempt is committed
// without the writes.
//
// Only what goes through tx is part of the promise: a request to another
// service, or a second connection, is not rolled back and may happen again. f must
// not end tx (what it had written for the whole transaction is then in doubt and
// parked), and must close its rows before it returns. READ COMMITTED is the
// isolation. No journal is kept: the transaction is one.
//
// Wrong arguments are reported by Effect.Validate.
func Transactional[TX any](f func(ctx context.Context, tx TX, in Input) (Receipt, error), o *TransactionalOptions) Effect {
	c := &checks{maker: "Transactional"}
	t := txSpec[TX](c)
	if f != nil {
		t.single = func(ctx context.Context, handle any, in Input) (Receipt, error) { return f(ctx, handle.(TX), in) } //nolint:errcheck // checked by Accepts
	}
	return transactional(c, t, f != nil, DefaultTransaction, o)
}

// TransactionalBatch is Transactional for a function on several records, which
// may write them with one statement. If it answers an error for some of them, or
// a statement failed, everything is rolled back and it is called again: without
// those for which it answered Temporary or Permanent, or, if it blamed none, for
// each half by itself, and so on. So one record that the database refuses fails
// alone.
func TransactionalBatch[TX any](f func(ctx context.Context, tx TX, in []Input) []Outcome, o *TransactionalOptions) Effect {
	c := &checks{maker: "TransactionalBatch"}
	t := txSpec[TX](c)
	if f != nil {
		t.batch = func(ctx context.Context, handle any, in []Input) []Outcome { return f(ctx, handle.(TX), in) } //nolint:errcheck // checked by Accepts
	}
	return transactional(c, t, f != nil, DefaultMaxBatch, o)
}

// shared is what a transactional effect has beside its kind. The functions take
// the transaction as the store gives it.
type shared struct {
	name    string // of TX
	is      func(handle any) bool
	single  func(ctx context.Context, handle any, in Input) (Receipt, error)
	batch   func(ctx context.Context, handle any, in []Input) []Outcome
	records int // that share a transaction at most
}

func txSpec[TX any](c *checks) *shared {
	tx := reflect.TypeFor[TX]()
	if tx == reflect.TypeFor[any]() {
		c.failf("the transaction's type is any: name the one that the fence's store gives, such as pgx.Tx or *sql.Tx")
	}
	return &shared{name: tx.String(), is: func(handle any) bool {
		_, ok := handle.(TX)
		return ok
	}}
}

func transactional(c *checks, t *shared, given bool, records int, o *TransactionalOptions) Effect {
	if o == nil {
		o = &TransactionalOptions{}
	}
	if !given {
		c.failf("the function is nil: give the function that applies the effect")
	}
	t.records = c.count("MaxBatch", o.MaxBatch, records)
	s := &spec{kind: driver.KindTransactional, maxBatch: 1, shared: t}
	if t.batch != nil {
		s.maxBatch = t.records
	}
	s.maxRunTime = c.positive("MaxRunTime", o.MaxRunTime, DefaultMaxRunTime)
	return c.finish(s)
}

// Accepts returns nil if an effect of kind Transactional can work with what a
// store gives as its transaction (driver.Transactor.Handle), else what does not
// fit. It is an error for other kinds.
func (e Effect) Accepts(handle any) error {
	switch {
	case e.s == nil || e.s.shared == nil:
		return errors.New("an effect of kind " + e.Kind().String() + " takes no transaction")
	case !e.s.shared.is(handle):
		return fmt.Errorf("the effect wants a transaction of type %s, the fence's store gives %T: use the fence that is made for it (pgfence.New gives pgx.Tx, pgfence.NewSQL gives *sql.Tx)", e.s.shared.name, handle)
	}
	return nil
}

// MaxTransaction is the most records that share one transaction, 0 for kinds
// other than Transactional.
func (e Effect) MaxTransaction() int {
	if e.s == nil || e.s.shared == nil {
		return 0
	}
	return e.s.shared.records
}

// errNoTransaction is the outcome of a transactional effect that is run without
// its transaction.
var errNoTransaction = errors.New("an effect of kind transactional runs only in its fence's transaction: use Effect.RunTx")

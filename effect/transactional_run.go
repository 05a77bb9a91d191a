package effect

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"

	"github.com/oncefence/oncefence/fence/driver"
)

// ErrNotStarted is the outcome of a record that RunTx did not call the effect
// for.
var ErrNotStarted = errors.New("not started")

// errStatementFailed: the effect said "applied" although one of its statements
// had failed, after which the database takes nothing more.
var errStatementFailed = errors.New("the effect answered without an error although a statement of its transaction had failed: return the statement's error, or run it in a savepoint of its own")

// TxError says that a transaction cannot be committed. What was written in it is
// gone, unless Err matches driver.ErrTxEnded: then nobody knows.
type TxError struct {
	// Running are the places of the records for which the effect was running when
	// the transaction became of no use.
	Running []int
	// Called are the places of all records for which the effect was called in this
	// transaction.
	Called []int
	Err    error
}

// Error says why.
func (e *TxError) Error() string { return "the effect's transaction is lost: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TxError) Unwrap() error { return e.Err }

// RunTx calls a transactional effect for the records of in, in their order, and
// returns one outcome for each. What it wrote for those that are applied is then
// in tx, everything else is rolled back; no outcome is unknown. Records from the
// point on at which goOn answers false, or ctx ends, are not started
// (ErrNotStarted); the first one always is.
//
// With an error, which is a *TxError, tx must not be committed. For
// runtime.Goexit see Run.
func (e Effect) RunTx(ctx context.Context, tx driver.Tx, in []Input, goOn func() bool) ([]Outcome, error) {
	if err := e.Validate(); err != nil {
		return unknownOutcomes(len(in), Temporary(err)), nil
	}
	if err := e.Accepts(tx.Handle()); err != nil {
		return unknownOutcomes(len(in), Temporary(err)), nil
	}
	r := &txRun{ctx: ctx, shared: e.s.shared, tx: tx, in: in, goOn: goOn, out: unknownOutcomes(len(in), ErrNotStarted)}
	var err error
	if r.shared.batch != nil {
		all := make([]int, len(in))
		for i := range all {
			all[i] = i
		}
		err = r.several(all)
	} else {
		err = r.each()
	}
	if err != nil {
		return r.out, err
	}
	return r.out, nil
}

// txRun is one call of RunTx.
type txRun struct {
	ctx    context.Context //nolint:containedctx // of one call
	shared *shared
	tx     driver.Tx
	in     []Input
	goOn   func() bool
	out    []Outcome
	called []int
	clean  bool // nothing was written since the savepoint
}

// mark sets the savepoint that the next call is rolled back to.
func (r *txRun) mark() error {
	if r.clean {
		return nil
	}
	err := r.tx.Savepoint(r.ctx)
	r.clean = err == nil
	return err
}

func (r *txRun) lost(running []int, err error) error {
	return &TxError{Running: slices.Clone(running), Called: r.called, Err: err}
}

// stopped reports whether no further record is to be started.
func (r *txRun) stopped() bool { return r.ctx.Err() != nil || !r.goOn() }

// each runs the records one by one, each in a savepoint.
func (r *txRun) each() error {
	for i := range r.in {
		if i > 0 && r.stopped() {
			return nil
		}
		if err := r.mark(); err != nil { // what was called last broke it
			return r.lost(r.called[max(0, i-1):], err)
		}
		r.called = append(r.called, i)
		r.clean = false
		r.out[i] = r.call(r.in[i])
		if err := r.judge([]int{i}); err != nil {
			return err
		}
	}
	return nil
}

func (r *txRun) call(in Input) (out Outcome) {
	defer func() {
		if v := recover(); v != nil {
			out = Outcome{Err: &PanicError{Where: "effect", Value: v, Stack: debug.Stack()}}
		}
	}()
	receipt, err := r.shared.single(r.ctx, r.tx.Handle(), in)
	return Outcome{Receipt: receipt, Err: err}
}

// judge looks at the outcomes of records that were run together. If they are not
// all applied, everything that they wrote is rolled back.
func (r *txRun) judge(places []int) error {
	applied := true
	var errs []error
	for _, i := range places {
		applied = applied && r.out[i].Err == nil
		errs = append(errs, r.out[i].Err)
	}
	state := r.tx.Check()
	switch {
	case state == nil && applied:
		return nil
	case state != nil && !errors.Is(state, driver.ErrTxFailed):
		return r.lost(places, errors.Join(append(errs, state)...))
	}
	if err := r.tx.Rollback(r.ctx); err != nil {
		return r.lost(places, errors.Join(append(errs, err)...))
	}
	r.clean = true
	for _, i := range places {
		class, delay := Classify(r.out[i].Err)
		switch {
		case class == ClassApplied && state != nil && len(places) == 1:
			r.out[i] = Outcome{Err: Temporary(errStatementFailed)}
		case class == ClassUnknown: // rolled back, so it is known
			r.out[i] = Outcome{Err: TemporaryAfter(r.out[i].Err, delay)}
		}
	}
	return nil
}

// several runs records together, and in parts where that did not go well.
func (r *txRun) several(places []int) error {
	if len(places) == 0 || len(r.called) > 0 && r.stopped() {
		return nil
	}
	if err := r.mark(); err != nil {
		return r.lost(r.called, err)
	}
	r.called = append(r.called, places...)
	r.clean = false
	blamed := r.callBatch(places)
	if err := r.judge(places); err != nil {
		return err
	}
	if !r.clean || len(places) == 1 {
		return nil // all applied, or the one that is to blame
	}
	var rest []int
	for _, i := range places {
		if !blamed[i] {
			rest = append(rest, i)
			r.out[i] = Outcome{Err: ErrNotStarted}
		}
	}
	if len(rest) < len(places) {
		return r.several(rest)
	}
	half := len(places) / 2
	if err := r.several(places[:half]); err != nil {
		return err
	}
	return r.several(places[half:])
}

// callBatch calls the effect for several records and tells which of them it
// blames: those for which it answered that nothing was applied.
func (r *txRun) callBatch(places []int) (blamed map[int]bool) {
	given := make([]Input, len(places))
	for n, i := range places {
		given[n] = r.in[i]
	}
	answer := r.answers(given)
	err := checkAnswer(len(places), len(answer))
	for n := 0; err == nil && n < len(places); n++ {
		if idOf(&given[n]) != idOf(&r.in[places[n]]) {
			err = reordered(len(places), n)
		}
	}
	blamed = make(map[int]bool)
	for n, i := range places {
		if err != nil {
			r.out[i] = Outcome{Err: err}
			continue
		}
		r.out[i] = answer[n]
		class := answer[n].Class()
		blamed[i] = class == ClassTemporary || class == ClassPermanent
	}
	return blamed
}

func (r *txRun) answers(in []Input) (out []Outcome) {
	defer func() {
		if v := recover(); v != nil {
			out = unknownOutcomes(len(in), &PanicError{Where: "batch effect", Value: v, Stack: debug.Stack()})
		}
	}()
	return r.shared.batch(r.ctx, r.tx.Handle(), in)
}

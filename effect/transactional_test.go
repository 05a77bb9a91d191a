package effect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence/driver"
)

// table is a transaction in memory: rows, of which those since the savepoint can
// be taken back.
type table struct {
	rows   []string
	saved  int
	failed bool
	ended  bool
	closed error // why nothing can be asked any more
	log    []string
}

func (t *table) Handle() any { return t }

func (t *table) Check() error {
	switch {
	case t.closed != nil:
		return t.closed
	case t.ended:
		return driver.ErrTxEnded
	case t.failed:
		return driver.ErrTxFailed
	}
	return nil
}

func (t *table) Savepoint(ctx context.Context) error {
	t.log = append(t.log, "savepoint")
	if err := errors.Join(t.Check(), ctx.Err()); err != nil {
		return err
	}
	t.saved = len(t.rows)
	return nil
}

func (t *table) Rollback(ctx context.Context) error {
	t.log = append(t.log, "rollback")
	if t.closed != nil || t.ended || ctx.Err() != nil {
		return errors.Join(t.closed, ctx.Err(), errors.New("cannot roll back"))
	}
	t.rows, t.failed = t.rows[:t.saved], false
	return nil
}

func (t *table) insert(row string) error {
	if t.failed || row == "refused" {
		t.failed = true
		return fmt.Errorf("the database refuses %s", row)
	}
	t.rows = append(t.rows, row)
	return nil
}

func txInputs(payloads ...string) []effect.Input {
	out := make([]effect.Input, len(payloads))
	for i, p := range payloads {
		out[i] = effect.Input{Key: fmt.Sprint("k", i), EffectID: fmt.Sprint("e", i), Payload: []byte(p)}
	}
	return out
}

func always() bool { return true }

// words says in words what the outcomes are.
func words(out []effect.Outcome) string {
	var all []string
	for _, o := range out {
		word := o.Class().String()
		if errors.Is(o.Err, effect.ErrNotStarted) {
			word = "not started"
		}
		all = append(all, word)
	}
	return strings.Join(all, ", ")
}

// one inserts the payload; some payloads do more.
func one(ctx context.Context, t *table, in effect.Input) (effect.Receipt, error) {
	t.log = append(t.log, string(in.Payload))
	if err := t.insert(string(in.Payload)); err != nil && string(in.Payload) != "refused" {
		return effect.Receipt{}, err
	}
	switch string(in.Payload) {
	case "temporary":
		return effect.Receipt{}, effect.TemporaryAfter(errors.New("later"), time.Minute)
	case "permanent":
		return effect.Receipt{}, effect.Permanent(errors.New("never"))
	case "unknown":
		return effect.Receipt{}, effect.UnknownAfter(errors.New("who knows"), time.Second)
	case "panic":
		panic("out of luck")
	case "ends it":
		t.ended = true
	case "loses it":
		t.closed = errors.New("connection lost")
	}
	return effect.Receipt{Payload: in.Payload}, ctx.Err()
}

func TestRunTxKeepsWhatIsApplied(t *testing.T) {
	e := effect.Transactional(one, nil)
	tx := &table{}
	out, err := e.RunTx(t.Context(), tx, txInputs("a", "temporary", "b", "permanent", "unknown", "panic", "refused", "c"), always)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := words(out), "applied, temporary, applied, permanent, temporary, temporary, temporary, applied"; got != want {
		t.Errorf("outcomes %s, want %s", got, want)
	}
	if got := strings.Join(tx.rows, " "); got != "a b c" {
		t.Errorf("rows %q", got)
	}
	if _, delay := effect.Classify(out[1].Err); delay != time.Minute {
		t.Errorf("the delay of a temporary error is %v", delay)
	}
	if _, delay := effect.Classify(out[4].Err); delay != time.Second {
		t.Errorf("the delay of an unknown error is %v", delay)
	}
	if !strings.Contains(out[6].Err.Error(), "although a statement of its transaction had failed") {
		t.Errorf("an effect that hid a failed statement: %v", out[6].Err)
	}
	var panicked *effect.PanicError
	if !errors.As(out[5].Err, &panicked) {
		t.Errorf("a panic: %v", out[5].Err)
	}
	// After a rollback the savepoint still stands.
	if n := strings.Count(strings.Join(tx.log, " "), "savepoint"); n != 3 {
		t.Errorf("%d savepoints: %v", n, tx.log)
	}
	if string(out[7].Receipt.Payload) != "c" {
		t.Errorf("receipt %q", out[7].Receipt.Payload)
	}
}

func TestRunTxStops(t *testing.T) {
	e := effect.Transactional(one, nil)
	calls := 0
	out, err := e.RunTx(t.Context(), &table{}, txInputs("a", "b", "c"), func() bool { calls++; return calls < 2 })
	if got := words(out); err != nil || got != "applied, applied, not started" {
		t.Errorf("%s, %v", got, err)
	}
	out, err = e.RunTx(t.Context(), &table{}, txInputs("a", "b"), func() bool { return false })
	if got := words(out); err != nil || got != "applied, not started" {
		t.Errorf("the first one is always started: %s, %v", got, err)
	}
}

func TestRunTxOfATransactionThatIsLost(t *testing.T) {
	for payload, cause := range map[string]error{"ends it": driver.ErrTxEnded, "loses it": nil} {
		e := effect.Transactional(one, nil)
		_, err := e.RunTx(t.Context(), &table{}, txInputs("a", "temporary", payload, "b"), always)
		var lost *effect.TxError
		if !errors.As(err, &lost) || !slices.Equal(lost.Running, []int{2}) || !slices.Equal(lost.Called, []int{0, 1, 2}) {
			t.Errorf("%s: %v, %+v", payload, err, lost)
		}
		if cause != nil && !errors.Is(err, cause) {
			t.Errorf("%s: %v", payload, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	e := effect.Transactional(func(_ context.Context, t *table, in effect.Input) (effect.Receipt, error) {
		if string(in.Payload) == "b" {
			cancel()
			return effect.Receipt{}, ctx.Err()
		}
		return effect.Receipt{}, t.insert(string(in.Payload))
	}, nil)
	_, err := e.RunTx(ctx, &table{}, txInputs("a", "b", "c"), always)
	var lost *effect.TxError
	if !errors.As(err, &lost) || !slices.Equal(lost.Running, []int{1}) || !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended: %v", err)
	}
}

// all inserts the payloads with one statement.
func all(_ context.Context, t *table, in []effect.Input) []effect.Outcome {
	out := effect.NewOutcomes(in)
	var payloads []string
	for i := range in {
		payloads = append(payloads, string(in[i].Payload))
	}
	t.log = append(t.log, strings.Join(payloads, "+"))
	var err error
	for _, p := range payloads {
		err = errors.Join(err, t.insert(p))
	}
	for i := range in {
		switch {
		case payloads[i] == "permanent":
			out[i].Err = effect.Permanent(errors.New("never"))
		case payloads[i] == "temporary":
			out[i].Err = effect.Temporary(errors.New("later"))
		default:
			out[i].Err = err
		}
	}
	return out
}

func TestRunTxOfABatchFindsWhoIsToBlame(t *testing.T) {
	for _, c := range []struct {
		name, in, out, rows, calls string
	}{
		{"all applied", "a b c", "applied, applied, applied", "a b c", "a+b+c"},
		{"one is refused", "a b refused c", "applied, applied, temporary, applied", "a b c", "a+b+refused+c a+b refused+c refused c"},
		{"two are blamed", "a permanent b temporary", "applied, permanent, applied, temporary", "a b", "a+permanent+b+temporary a+b"},
		{"blamed and refused", "a permanent refused b", "applied, permanent, temporary, applied", "a b", "a+permanent+refused+b a+refused+b a refused+b refused b"},
		{"all are blamed", "permanent temporary", "permanent, temporary", "", "permanent+temporary"},
		{"one alone", "refused", "temporary", "", "refused"},
		{"all are refused", "refused refused", "temporary, temporary", "", "refused+refused refused refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tx := &table{}
			out, err := effect.TransactionalBatch(all, nil).RunTx(t.Context(), tx, txInputs(strings.Fields(c.in)...), always)
			if err != nil {
				t.Fatal(err)
			}
			if got := words(out); got != c.out {
				t.Errorf("outcomes %s, want %s", got, c.out)
			}
			if got := strings.Join(tx.rows, " "); got != c.rows {
				t.Errorf("rows %q, want %q", got, c.rows)
			}
			calls := slices.DeleteFunc(tx.log, func(s string) bool { return s == "savepoint" || s == "rollback" })
			if got := strings.Join(calls, " "); got != c.calls {
				t.Errorf("called with %q, want %q", got, c.calls)
			}
		})
	}
}

func TestRunTxOfABatchThatMisbehaves(t *testing.T) {
	first := true
	odd := func(how func([]effect.Input, []effect.Outcome) []effect.Outcome) effect.Effect {
		return effect.TransactionalBatch(func(ctx context.Context, t *table, in []effect.Input) []effect.Outcome {
			out := all(ctx, t, in)
			if first {
				first = false
				return how(in, out)
			}
			return out
		}, nil)
	}
	for name, how := range map[string]func([]effect.Input, []effect.Outcome) []effect.Outcome{
		"too few outcomes": func(_ []effect.Input, out []effect.Outcome) []effect.Outcome { return out[1:] },
		"a panic":          func([]effect.Input, []effect.Outcome) []effect.Outcome { panic("out of luck") },
		"another order": func(in []effect.Input, out []effect.Outcome) []effect.Outcome {
			slices.Reverse(in)
			return out
		},
	} {
		first = true
		tx := &table{}
		out, err := odd(how).RunTx(t.Context(), tx, txInputs("a", "b", "c", "d"), always)
		if got := words(out); err != nil || got != "applied, applied, applied, applied" {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if got := strings.Join(tx.rows, " "); got != "a b c d" {
			t.Errorf("%s: rows %q", name, got)
		}
	}
}

func TestTransactionalSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		e   effect.Effect
		why string
	}{
		{effect.Transactional[*table](nil, nil), "effect.Transactional: the function is nil"},
		{effect.TransactionalBatch[*table](nil, nil), "effect.TransactionalBatch: the function is nil"},
		{effect.Transactional(one, &effect.TransactionalOptions{MaxRunTime: -1}), "MaxRunTime is -1"},
		{effect.Transactional(one, &effect.TransactionalOptions{MaxBatch: -1}), "MaxBatch is -1"},
		{effect.Transactional(func(context.Context, any, effect.Input) (effect.Receipt, error) { return effect.Receipt{}, nil }, nil), "the transaction's type is any"},
	} {
		if err := c.e.Validate(); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%v, want %q", err, c.why)
		}
	}
	e := effect.Transactional(one, nil)
	if err := e.Accepts(&strings.Builder{}); err == nil || !strings.Contains(err.Error(), "wants a transaction of type *effect_test.table, the fence's store gives *strings.Builder") {
		t.Errorf("another transaction: %v", err)
	}
	if err := e.Accepts((*table)(nil)); err != nil {
		t.Errorf("a nil of the type: %v", err)
	}
	if err := effect.AtLeastOnce(func(context.Context, effect.Input) (effect.Receipt, error) { return effect.Receipt{}, nil }, nil).Accepts((*table)(nil)); err == nil {
		t.Error("another kind takes a transaction")
	}
	if o := e.Run(t.Context(), effect.Input{}); o.Class() != effect.ClassTemporary || !strings.Contains(o.Err.Error(), "only in its fence's transaction") {
		t.Errorf("Run without a transaction: %v", o.Err)
	}
	if o := e.RunBatch(t.Context(), txInputs("a")); o[0].Class() != effect.ClassTemporary {
		t.Errorf("RunBatch without a transaction: %v", o[0].Err)
	}
}

func TestTransactionalSizes(t *testing.T) {
	for _, c := range []struct {
		name                   string
		e                      effect.Effect
		batch                  bool
		maxBatch, transactions int
	}{
		{"single", effect.Transactional(one, nil), false, 1, effect.DefaultTransaction},
		{"single, five", effect.Transactional(one, &effect.TransactionalOptions{MaxBatch: 5}), false, 1, 5},
		{"batch", effect.TransactionalBatch(all, nil), true, effect.DefaultMaxBatch, effect.DefaultMaxBatch},
		{"batch, five", effect.TransactionalBatch(all, &effect.TransactionalOptions{MaxBatch: 5}), true, 5, 5},
	} {
		if c.e.IsBatch() != c.batch || c.e.MaxBatch() != c.maxBatch || c.e.MaxTransaction() != c.transactions || c.e.Kind() != driver.KindTransactional || c.e.MaxRunTime() != effect.DefaultMaxRunTime {
			t.Errorf("%s: batch %v, %d in a call, %d in a transaction, kind %s", c.name, c.e.IsBatch(), c.e.MaxBatch(), c.e.MaxTransaction(), c.e.Kind())
		}
	}
	if n := effect.AtMostOnce(nil, nil).MaxTransaction(); n != 0 {
		t.Errorf("another kind: %d", n)
	}
}

package effect

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
)

// Run calls the effect for one record and waits for it. A panic becomes a
// *PanicError, which leaves the outcome unknown. A batch effect is called with
// a slice of one.
//
// Run sets no time limit: ctx must end with the lease and with MaxRunTime. An
// effect that does not look at its context blocks Run for as long as it likes.
// runtime.Goexit in the effect (t.FailNow in a test's effect, say) ends the
// calling goroutine and Run does not return: a caller that must survive it
// notices in a deferred function and takes the outcome as unknown.
//
// An invalid effect is not called; the outcome is temporary.
func (e Effect) Run(ctx context.Context, in Input) Outcome {
	if err := e.Validate(); err != nil {
		return Outcome{Err: Temporary(err)}
	}
	if e.s.shared != nil {
		return Outcome{Err: Temporary(errNoTransaction)}
	}
	if e.s.batch != nil {
		return e.runBatch(ctx, []Input{in})[0]
	}
	return e.runSingle(ctx, in)
}

// RunBatch calls the effect for the records of in and returns one outcome for
// each, in their order. A single effect is called for one after the other, and
// the records after the end of ctx are not started (temporary). What holds for
// Run holds here: a panic of a batch effect makes every record unknown.
//
// A batch effect gets its own copy of the slice, in which it may change
// nothing but the bytes it owns. If it answers another number of outcomes, or
// reorders the slice, all outcomes are unknown, since none can be told apart.
func (e Effect) RunBatch(ctx context.Context, in []Input) []Outcome {
	if len(in) == 0 {
		return nil
	}
	if err := e.Validate(); err != nil {
		return unknownOutcomes(len(in), Temporary(err))
	}
	if e.s.shared != nil {
		return unknownOutcomes(len(in), Temporary(errNoTransaction))
	}
	if e.s.batch != nil {
		return e.runBatch(ctx, in)
	}
	out := make([]Outcome, len(in))
	for i := range in {
		if err := ctx.Err(); err != nil {
			out[i].Err = Temporary(fmt.Errorf("not started: %w", err))
			continue
		}
		out[i] = e.runSingle(ctx, in[i])
	}
	return out
}

func (e Effect) runSingle(ctx context.Context, in Input) (out Outcome) {
	defer func() {
		if v := recover(); v != nil {
			out = Outcome{Err: &PanicError{Where: "effect", Value: v, Stack: debug.Stack()}}
		}
	}()
	receipt, err := e.s.single(ctx, in)
	return Outcome{Receipt: receipt, Err: err}
}

func (e Effect) runBatch(ctx context.Context, in []Input) (out []Outcome) {
	defer func() {
		if v := recover(); v != nil {
			out = unknownOutcomes(len(in), &PanicError{Where: "batch effect", Value: v, Stack: debug.Stack()})
		}
	}()
	given := slices.Clone(in)
	answer := e.s.batch(ctx, given)
	if err := checkAnswer(len(in), len(answer)); err != nil {
		return unknownOutcomes(len(in), err)
	}
	for i := range in {
		if idOf(&given[i]) != idOf(&in[i]) {
			return unknownOutcomes(len(in), reordered(len(in), i))
		}
	}
	return answer
}

func checkAnswer(records, outcomes int) error {
	if records == outcomes {
		return nil
	}
	return fmt.Errorf("the batch effect answered %d outcomes for %d records: answer exactly one for each, in their order (effect.NewOutcomes makes the slice)", outcomes, records)
}

// id tells the records of one batch apart.
type id struct{ key, effectID string }

func idOf(in *Input) id { return id{key: in.Key, effectID: in.EffectID} }

func reordered(records, place int) error {
	return fmt.Errorf("the batch effect changed the order of its %d records (from place %d), so its outcomes belong to nobody: sort a copy, and answer in the order given", records, place)
}

// Ask calls the probe with a context that ends after ProbedOptions.ProbeTimeout
// and waits for it. An error, a panic (*PanicError) included, comes with a
// Finding that cannot say. Ask does not know when the last attempt ended: it is
// for the caller not to believe "not applied" before Settled. It is an error
// for kinds other than Probed and for an invalid effect. For runtime.Goexit see
// Run.
func (e Effect) Ask(ctx context.Context, in Input) (finding Finding, err error) {
	if err := e.Validate(); err != nil {
		return Finding{}, err
	}
	if e.s.probe == nil {
		return Finding{}, errors.New("an effect of kind " + e.s.kind.String() + " has no probe: only effect.Probed can be asked")
	}
	ctx, cancel := context.WithTimeout(ctx, e.s.probeTimeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			finding, err = Finding{}, &PanicError{Where: "probe", Value: v, Stack: debug.Stack()}
		}
	}()
	finding, err = e.s.probe(ctx, in)
	if err != nil {
		return Finding{}, err
	}
	return finding, nil
}

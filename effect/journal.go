package effect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oncefence/oncefence/fence/driver"
)

// ErrStepInDoubt is matched by the error of a journal step that may have been
// applied by an attempt that ended without a word, and that cannot be run
// again. An effect returns it, and the record is parked: a person looks.
var ErrStepInDoubt = errors.New("a step of the effect is in doubt")

// Keeper keeps the steps of one record's journal. The loop implements it.
type Keeper interface {
	// KeptSteps returns the steps that are kept, in order.
	KeptSteps() []driver.Step
	// KeepSteps writes all steps under the claim's token and returns when the
	// fence store has them.
	KeepSteps(ctx context.Context, steps []driver.Step) error
	// DoubtfulStart reports whether the attempt began in doubt.
	DoubtfulStart() bool
}

// WithKeeper returns in with a keeper for its journal.
func (in Input) WithKeeper(k Keeper) Input {
	in.keeper = k
	return in
}

// Journal makes one effect of several steps. The receipt of a step is in the
// fence store before the next one starts; after a crash, a retry or a replay
// the steps that are kept are not run again, they answer with their receipt.
//
//	j := in.Journal()
//	reserved, err := j.Idempotent(ctx, "reserve", reserve)
//	if err != nil {
//		return effect.Receipt{}, err
//	}
//	paid, err := j.Probed(ctx, "pay", pay, askPayment)
//
// Each step has its own kind, which decides when an attempt ended between the
// step and its receipt; the kind of the whole effect decides whether it is run
// again at all (Idempotent: it is). A "not applied" of a probe or a temporary
// error speaks of what came after the last kept step. Steps run one after the
// other, each name once. Under AtLeastOnce nothing is kept and every step runs
// in every attempt.
type Journal struct {
	in    Input
	steps []driver.Step
	doubt bool // the next step that is not kept may have been applied
	used  map[string]bool
}

// Journal opens the record's journal. Call it once in an attempt.
func (in Input) Journal() *Journal {
	j := &Journal{in: in, used: make(map[string]bool)}
	if in.keeper != nil {
		j.steps, j.doubt = slices.Clone(in.keeper.KeptSteps()), in.keeper.DoubtfulStart()
	}
	return j
}

// StepFunc runs a step. effectID is stable for the record and the step: a sink
// dedupes by it. The receipt is kept; nil is fine.
type StepFunc func(ctx context.Context, effectID string) (receipt []byte, err error)

// StepProbe asks the sink what became of a step.
type StepProbe func(ctx context.Context, effectID string) (Finding, error)

// Idempotent runs a step whose sink dedupes by the effect id, or overwrites.
// In doubt it runs again.
func (j *Journal) Idempotent(ctx context.Context, name string, run StepFunc) ([]byte, error) {
	return j.step(ctx, name, driver.KindIdempotent, run, nil)
}

// Probed runs a step whose sink can be asked. In doubt it asks: applied keeps
// the receipt's payload, not applied runs, anything else is ErrStepInDoubt.
func (j *Journal) Probed(ctx context.Context, name string, run StepFunc, ask StepProbe) ([]byte, error) {
	return j.step(ctx, name, driver.KindProbed, run, ask)
}

// AtMostOnce runs a step that must not run twice and cannot be asked about. In
// doubt it is ErrStepInDoubt.
func (j *Journal) AtMostOnce(ctx context.Context, name string, run StepFunc) ([]byte, error) {
	return j.step(ctx, name, driver.KindAtMostOnce, run, nil)
}

// Kept returns the names of the steps that are kept.
func (j *Journal) Kept() []string {
	names := make([]string, len(j.steps))
	for i, s := range j.steps {
		names[i] = s.Name
	}
	return names
}

func (j *Journal) step(ctx context.Context, name string, kind driver.Kind, run StepFunc, ask StepProbe) ([]byte, error) {
	if name == "" || run == nil || j.used[name] || (kind == driver.KindProbed && ask == nil) {
		return nil, Permanent(fmt.Errorf("journal step %q: a step needs a name of its own, a function and, if it is probed, a probe", name))
	}
	j.used[name] = true
	for _, s := range j.steps {
		if s.Name == name {
			return s.Receipt, nil
		}
	}
	id := j.in.EffectID + "/" + name
	if j.doubt {
		j.doubt = false // only the first step after the last kept one can have been applied
		receipt, applied, err := j.resolve(ctx, name, kind, id, ask)
		if err != nil {
			return nil, err
		}
		if applied {
			return receipt, j.keep(ctx, name, kind, receipt)
		}
	}
	receipt, err := run(ctx, id)
	if err != nil {
		return nil, err
	}
	return receipt, j.keep(ctx, name, kind, receipt)
}

func (j *Journal) resolve(ctx context.Context, name string, kind driver.Kind, id string, ask StepProbe) (receipt []byte, applied bool, err error) {
	switch kind {
	case driver.KindIdempotent:
		return nil, false, nil
	case driver.KindProbed:
		finding, err := ask(ctx, id)
		if r, applied := finding.Applied(); applied && err == nil {
			return r.Payload, true, nil
		}
		if finding.NotApplied() && err == nil {
			return nil, false, nil
		}
		return nil, false, errors.Join(fmt.Errorf("%w: step %q, and its sink cannot say", ErrStepInDoubt, name), err)
	default:
		return nil, false, fmt.Errorf("%w: step %q must not run twice", ErrStepInDoubt, name)
	}
}

func (j *Journal) keep(ctx context.Context, name string, kind driver.Kind, receipt []byte) error {
	j.steps = append(j.steps, driver.Step{Name: name, Kind: kind, Receipt: receipt})
	if j.in.keeper == nil {
		return nil
	}
	if err := j.in.keeper.KeepSteps(ctx, j.steps); err != nil {
		return fmt.Errorf("keep step %q: %w", name, err)
	}
	return nil
}

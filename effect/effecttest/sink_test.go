package effecttest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/effecttest"
)

var (
	errBusy    = errors.New("the sink is busy")
	errUnknown = errors.New("no such customer")
)

// ledger is a sink: how often it holds what, and by which token.
type ledger struct {
	mu     sync.Mutex
	held   map[string]int
	token  map[string]uint64
	heard  map[string]bool
	refuse error // what the next effects are answered
}

func newLedger() *ledger {
	return &ledger{held: map[string]int{}, token: map[string]uint64{}, heard: map[string]bool{}}
}

func (l *ledger) applied(_ context.Context, in effect.Input) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[in.EffectID], nil
}

func (l *ledger) add(in effect.Input) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[in.EffectID]++
	l.token[in.EffectID] = in.Token
}

func (l *ledger) state(in effect.Input) (times int, token uint64, heard bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[in.EffectID], l.token[in.EffectID], l.heard[in.EffectID]
}

func (l *ledger) hear(in effect.Input) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard[in.EffectID] = true
}

func (l *ledger) refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refuse
}

func (l *ledger) refusing(err error) func(effect.Input) func() {
	set := func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.refuse = err
	}
	return func(effect.Input) func() {
		set(err)
		return func() { set(nil) }
	}
}

// looks, refuses and books: what a good effect does, deduping or not.
func (l *ledger) good(dedupe bool) effect.Func {
	return func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		if err := ctx.Err(); err != nil {
			return effect.Receipt{}, effect.Temporary(err)
		}
		switch err := l.refusal(); {
		case errors.Is(err, errBusy):
			return effect.Receipt{}, effect.Temporary(err)
		case err != nil:
			return effect.Receipt{}, effect.Permanent(err)
		}
		if times, _, _ := l.state(in); dedupe && times > 0 {
			return effect.Receipt{}, nil
		}
		l.add(in)
		return effect.Receipt{}, nil
	}
}

func (l *ledger) probe(_ context.Context, in effect.Input) (effect.Finding, error) {
	if times, _, _ := l.state(in); times > 0 {
		return effect.Applied(effect.Receipt{}), nil
	}
	return effect.NotApplied(), nil
}

// each makes a batch effect of a single one.
func each(f effect.Func) effect.BatchFunc {
	return func(ctx context.Context, in []effect.Input) []effect.Outcome {
		out := effect.NewOutcomes(in)
		for i := range in {
			r, err := f(ctx, in[i])
			out[i] = effect.Outcome{Receipt: r, Err: err}
		}
		return out
	}
}

func idempotent(f effect.Func) effect.Effect {
	return effect.Idempotent(f, effect.IdempotentOptions{Remembers: effect.Forever})
}

func probed(f effect.Func, p effect.Probe) effect.Effect {
	return effect.Probed(f, p, effect.ProbedOptions{Settled: time.Second})
}

func atMostOnce(f effect.Func) effect.Effect  { return effect.AtMostOnce(f, nil) }
func atLeastOnce(f effect.Func) effect.Effect { return effect.AtLeastOnce(f, nil) }

// run tries e on l without waiting in real time.
func (l *ledger) run(t *testing.T, e effect.Effect, change ...func(*effecttest.Config)) (report effecttest.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		report = effecttest.Run(t.Context(), l.config(e, change...))
	})
	return report
}

func (l *ledger) config(e effect.Effect, change ...func(*effecttest.Config)) effecttest.Config {
	c := effecttest.Config{Effect: e, Applied: l.applied, Refuse: l.refusing(errBusy), Reject: l.refusing(errUnknown)}
	for _, f := range change {
		f(&c)
	}
	return c
}

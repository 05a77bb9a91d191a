package effect_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/effect"
)

func inputs(n int) []effect.Input {
	in := make([]effect.Input, n)
	for i := range in {
		in[i] = effect.Input{Key: fmt.Sprintf("orders:0::%d", i), EffectID: fmt.Sprintf("%032x", i), Attempt: 1}
	}
	return in
}

func atMostOnce(f effect.Func) effect.Effect           { return effect.AtMostOnce(f, nil) }
func atMostOnceBatch(f effect.BatchFunc) effect.Effect { return effect.AtMostOnceBatch(f, nil) }

func TestRunHandsOverWhatItIsGiven(t *testing.T) {
	type ctxKey struct{}
	ctx := context.WithValue(t.Context(), ctxKey{}, "mine")
	in := effect.Input{Key: "k", EffectID: "e", Token: 7, Payload: []byte("p")}
	e := atMostOnce(func(ctx context.Context, got effect.Input) (effect.Receipt, error) {
		if ctx.Value(ctxKey{}) != "mine" {
			t.Error("another context")
		}
		if got.Key != "k" || got.EffectID != "e" || got.Token != 7 || string(got.Payload) != "p" {
			t.Errorf("input %+v", got)
		}
		return effect.Receipt{EffectID: "booking-1", Payload: []byte("ok")}, nil
	})
	out := e.Run(ctx, in)
	if out.Err != nil || out.Receipt.EffectID != "booking-1" || string(out.Receipt.Payload) != "ok" {
		t.Errorf("outcome %+v", out)
	}
}

func TestRunReturnsTheErrorAsItIs(t *testing.T) {
	e := atMostOnce(func(context.Context, effect.Input) (effect.Receipt, error) { return effect.Receipt{}, errSink })
	if out := e.Run(t.Context(), effect.Input{}); out.Err != errSink { //nolint:errorlint // the very same error
		t.Errorf("error %v, want the one returned", out.Err)
	}
}

func TestPanicIsUnknownWithStack(t *testing.T) {
	boom := func(context.Context, effect.Input) (effect.Receipt, error) { explode(); return effect.Receipt{}, nil }
	boomBatch := func(_ context.Context, in []effect.Input) []effect.Outcome { explode(); return nil }
	boomProbe := func(context.Context, effect.Input) (effect.Finding, error) {
		explode()
		return effect.Applied(effect.Receipt{}), nil
	}

	check := func(t *testing.T, err error, where string) {
		t.Helper()
		var p *effect.PanicError
		if !errors.As(err, &p) {
			t.Fatalf("error %v, want a *PanicError", err)
		}
		if p.Where != where || p.Value != "exploded" || !strings.Contains(string(p.Stack), "explode") {
			t.Errorf("where %q value %v, stack names the place: %v", p.Where, p.Value, strings.Contains(string(p.Stack), "explode"))
		}
		if class, _ := effect.Classify(err); class != effect.ClassUnknown {
			t.Errorf("class %v, want unknown", class)
		}
	}
	t.Run("single", func(t *testing.T) { check(t, atMostOnce(boom).Run(t.Context(), effect.Input{}).Err, "effect") })
	t.Run("batch", func(t *testing.T) {
		out := atMostOnceBatch(boomBatch).RunBatch(t.Context(), inputs(3))
		if len(out) != 3 {
			t.Fatalf("%d outcomes for 3 records", len(out))
		}
		for _, o := range out {
			check(t, o.Err, "batch effect")
		}
	})
	t.Run("probe", func(t *testing.T) {
		f, err := effect.Probed(nop, boomProbe, effect.ProbedOptions{Settled: time.Second}).Ask(t.Context(), effect.Input{})
		check(t, err, "probe")
		if !f.CannotSay() {
			t.Errorf("finding %v, want cannot say", f)
		}
	})
	t.Run("panic(nil)", func(t *testing.T) {
		out := atMostOnce(func(context.Context, effect.Input) (effect.Receipt, error) { panic(nil) }).Run(t.Context(), effect.Input{})
		var nilPanic *runtime.PanicNilError
		if !errors.As(out.Err, &nilPanic) {
			t.Errorf("error %v, want one that wraps *runtime.PanicNilError", out.Err)
		}
	})
}

func explode() { panic("exploded") }

func TestRunOfAnInvalidEffectCallsNothing(t *testing.T) {
	called := false
	f := func(context.Context, effect.Input) (effect.Receipt, error) {
		called = true
		return effect.Receipt{}, nil
	}
	for name, e := range map[string]effect.Effect{
		"zero":  {},
		"wrong": effect.Idempotent(f, effect.IdempotentOptions{}),
	} {
		if got := e.Run(t.Context(), effect.Input{}); got.Class() != effect.ClassTemporary || !errors.Is(got.Err, e.Validate()) {
			t.Errorf("%s: Run = %v, want temporary with the error of Validate", name, got.Err)
		}
		for _, got := range e.RunBatch(t.Context(), inputs(2)) {
			if got.Class() != effect.ClassTemporary {
				t.Errorf("%s: RunBatch = %v, want temporary", name, got.Err)
			}
		}
		if f, err := e.Ask(t.Context(), effect.Input{}); err == nil || !f.CannotSay() {
			t.Errorf("%s: Ask = %v, %v, want an error", name, f, err)
		}
	}
	if called {
		t.Error("the function of an invalid effect was called")
	}
}

func TestRunOfABatchEffect(t *testing.T) {
	e := atMostOnceBatch(func(_ context.Context, in []effect.Input) []effect.Outcome {
		return []effect.Outcome{{Receipt: effect.Receipt{EffectID: "for " + in[0].Key}}}
	})
	if out := e.Run(t.Context(), effect.Input{Key: "k"}); out.Err != nil || out.Receipt.EffectID != "for k" {
		t.Errorf("outcome %+v", out)
	}
}

func TestRunBatchOfASingleEffect(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var ran []string
	e := atMostOnce(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		ran = append(ran, in.Key)
		if len(ran) == 2 {
			cancel()
			return effect.Receipt{}, errSink
		}
		return effect.Receipt{EffectID: in.Key}, nil
	})
	in := inputs(4)
	out := e.RunBatch(ctx, in)
	if want := []string{in[0].Key, in[1].Key}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v and nothing after the end of the context", ran, want)
	}
	if out[0].Receipt.EffectID != in[0].Key || out[0].Err != nil {
		t.Errorf("first %+v", out[0])
	}
	if !errors.Is(out[1].Err, errSink) {
		t.Errorf("second %+v", out[1])
	}
	for _, o := range out[2:] {
		if o.Class() != effect.ClassTemporary || !errors.Is(o.Err, context.Canceled) {
			t.Errorf("not started: %+v, want temporary around context.Canceled", o)
		}
	}
}

func TestRunBatchMapsOutcomesByPlace(t *testing.T) {
	e := atMostOnceBatch(func(_ context.Context, in []effect.Input) []effect.Outcome {
		out := effect.NewOutcomes(in)
		for i := range in {
			if i == 1 {
				continue // never reached
			}
			out[i] = effect.Outcome{Receipt: effect.Receipt{EffectID: in[i].Key}}
		}
		return out
	})
	in := inputs(3)
	out := e.RunBatch(t.Context(), in)
	if out[0].Receipt.EffectID != in[0].Key || out[2].Receipt.EffectID != in[2].Key {
		t.Errorf("outcomes %+v", out)
	}
	if out[1].Class() != effect.ClassUnknown || !errors.Is(out[1].Err, effect.ErrNotAnswered) {
		t.Errorf("the record that was not reached: %+v, want unknown", out[1])
	}
}

func TestRunBatchWithAWrongNumberOfOutcomes(t *testing.T) {
	for _, n := range []int{0, 2, 4} {
		e := atMostOnceBatch(func(context.Context, []effect.Input) []effect.Outcome { return make([]effect.Outcome, n) })
		out := e.RunBatch(t.Context(), inputs(3))
		if len(out) != 3 {
			t.Fatalf("%d outcomes for 3 records", len(out))
		}
		want := fmt.Sprintf("answered %d outcomes for 3 records", n)
		for _, o := range out {
			if o.Class() != effect.ClassUnknown || !strings.Contains(o.Err.Error(), want) {
				t.Errorf("%d outcomes: %v, want unknown with %q", n, o.Err, want)
			}
		}
	}
}

func TestRunBatchThatReordersItsRecords(t *testing.T) {
	in := inputs(3)
	before := slices.Clone(in)
	e := atMostOnceBatch(func(_ context.Context, in []effect.Input) []effect.Outcome {
		slices.Reverse(in)
		return make([]effect.Outcome, len(in))
	})
	for _, o := range e.RunBatch(t.Context(), in) {
		if o.Class() != effect.ClassUnknown || !strings.Contains(o.Err.Error(), "changed the order") {
			t.Errorf("outcome %v, want unknown, since nobody knows whose it is", o.Err)
		}
	}
	for i := range in {
		if in[i].Key != before[i].Key {
			t.Fatal("the effect reordered the caller's slice")
		}
	}
}

func TestRunBatchOfNothing(t *testing.T) {
	e := atMostOnceBatch(func(context.Context, []effect.Input) []effect.Outcome {
		t.Error("called for no record")
		return nil
	})
	if out := e.RunBatch(t.Context(), nil); len(out) != 0 {
		t.Errorf("%d outcomes for no record", len(out))
	}
}

// Goexit is the caller's to notice: Run must neither hide nor answer it.
func TestGoexitPassesThroughRun(t *testing.T) {
	answered := make(chan bool, 1)
	go func() {
		returned := false
		defer func() { answered <- returned }()
		atMostOnce(func(context.Context, effect.Input) (effect.Receipt, error) {
			runtime.Goexit()
			return effect.Receipt{}, nil
		}).Run(context.Background(), effect.Input{})
		returned = true
	}()
	if <-answered {
		t.Error("Run returned after Goexit")
	}
}

func TestAsk(t *testing.T) {
	ask := func(probe effect.Probe) (effect.Finding, error) {
		return effect.Probed(nop, probe, effect.ProbedOptions{Settled: time.Second}).Ask(t.Context(), effect.Input{EffectID: "e"})
	}
	f, err := ask(func(_ context.Context, in effect.Input) (effect.Finding, error) {
		return effect.Applied(effect.Receipt{EffectID: "booking for " + in.EffectID}), nil
	})
	if r, ok := f.Applied(); err != nil || !ok || r.EffectID != "booking for e" {
		t.Errorf("applied: %v, %v", f, err)
	}
	f, err = ask(func(context.Context, effect.Input) (effect.Finding, error) {
		return effect.Applied(effect.Receipt{}), errSink
	})
	if !errors.Is(err, errSink) || !f.CannotSay() {
		t.Errorf("an answer with an error: %v, %v; want cannot say", f, err)
	}
	f, err = atMostOnce(nop).Ask(t.Context(), effect.Input{})
	if err == nil || !strings.Contains(err.Error(), "at-most-once has no probe") || !f.CannotSay() {
		t.Errorf("another kind: %v, %v", f, err)
	}
}

func TestAskEndsAfterProbeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := effect.Probed(nop, func(ctx context.Context, _ effect.Input) (effect.Finding, error) {
			<-ctx.Done()
			return effect.Finding{}, ctx.Err()
		}, effect.ProbedOptions{Settled: time.Second, ProbeTimeout: 3 * time.Second})
		start := time.Now()
		_, err := e.Ask(t.Context(), effect.Input{})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v, want the deadline after 3s", err, time.Since(start))
		}
	})
}

func TestFinding(t *testing.T) {
	tests := []struct {
		f                              effect.Finding
		applied, notApplied, cannotSay bool
		text                           string
	}{
		{effect.Finding{}, false, false, true, "cannot say"},
		{effect.CannotSay(), false, false, true, "cannot say"},
		{effect.NotApplied(), false, true, false, "not applied"},
		{effect.Applied(effect.Receipt{EffectID: "secret"}), true, false, false, "applied"},
	}
	for _, tt := range tests {
		if _, applied := tt.f.Applied(); applied != tt.applied || tt.f.NotApplied() != tt.notApplied || tt.f.CannotSay() != tt.cannotSay || tt.f.String() != tt.text {
			t.Errorf("%v: %v %v %v", tt.f, applied, tt.f.NotApplied(), tt.f.CannotSay())
		}
	}
}

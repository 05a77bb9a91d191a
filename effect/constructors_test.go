package effect_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence/driver"
)

func nop(context.Context, effect.Input) (effect.Receipt, error) { return effect.Receipt{}, nil }

func nopBatch(_ context.Context, in []effect.Input) []effect.Outcome {
	return make([]effect.Outcome, len(in))
}

func cannotSay(context.Context, effect.Input) (effect.Finding, error) {
	return effect.CannotSay(), nil
}

func TestZeroEffect(t *testing.T) {
	var e effect.Effect
	err := e.Validate()
	if err == nil || !strings.Contains(err.Error(), "no effect kind: use effect.Transactional") {
		t.Errorf("Validate = %v, want a sentence that names the constructors", err)
	}
	if e.Kind() != driver.KindNone || e.IsBatch() || e.MaxBatch() != 1 || e.Remembers() != 0 || e.Settled() != 0 ||
		e.ProbeAttempts() != 0 || e.ProbeBackoff(1) != 0 || e.MaxRunTime() != effect.DefaultMaxRunTime {
		t.Errorf("accessors of the zero effect: %v %v %v %v %v %v %v", e.Kind(), e.IsBatch(), e.MaxBatch(),
			e.Remembers(), e.Settled(), e.ProbeAttempts(), e.MaxRunTime())
	}
}

func TestConstructorsMakeTheirKind(t *testing.T) {
	tests := []struct {
		name   string
		effect effect.Effect
		kind   driver.Kind
		batch  bool
	}{
		{"Idempotent", effect.Idempotent(nop, effect.IdempotentOptions{Remembers: time.Hour}), driver.KindIdempotent, false},
		{"IdempotentBatch", effect.IdempotentBatch(nopBatch, effect.IdempotentOptions{Remembers: time.Hour}), driver.KindIdempotent, true},
		{"Probed", effect.Probed(nop, cannotSay, effect.ProbedOptions{Settled: time.Second}), driver.KindProbed, false},
		{"ProbedBatch", effect.ProbedBatch(nopBatch, cannotSay, effect.ProbedOptions{Settled: effect.Immediately}), driver.KindProbed, true},
		{"AtMostOnce", effect.AtMostOnce(nop, nil), driver.KindAtMostOnce, false},
		{"AtMostOnceBatch", effect.AtMostOnceBatch(nopBatch, nil), driver.KindAtMostOnce, true},
		{"AtLeastOnce", effect.AtLeastOnce(nop, nil), driver.KindAtLeastOnce, false},
		{"AtLeastOnceBatch", effect.AtLeastOnceBatch(nopBatch, nil), driver.KindAtLeastOnce, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := tt.effect
			if err := e.Validate(); err != nil {
				t.Fatalf("Validate: %v", err)
			}
			if e.Kind() != tt.kind || e.IsBatch() != tt.batch {
				t.Errorf("kind %v batch %v, want %v %v", e.Kind(), e.IsBatch(), tt.kind, tt.batch)
			}
			wantMax := 1
			if tt.batch {
				wantMax = effect.DefaultMaxBatch
			}
			if e.MaxBatch() != wantMax {
				t.Errorf("MaxBatch = %d, want %d", e.MaxBatch(), wantMax)
			}
			if e.MaxRunTime() != 5*time.Minute {
				t.Errorf("MaxRunTime = %v, want 5m", e.MaxRunTime())
			}
		})
	}
}

func TestOptionsReachTheAccessors(t *testing.T) {
	e := effect.IdempotentBatch(nopBatch, effect.IdempotentOptions{Remembers: 24 * time.Hour, MaxRunTime: time.Minute, MaxBatch: 7})
	if e.Remembers() != 24*time.Hour || e.MaxRunTime() != time.Minute || e.MaxBatch() != 7 {
		t.Errorf("idempotent: %v %v %v", e.Remembers(), e.MaxRunTime(), e.MaxBatch())
	}
	if got := effect.Idempotent(nop, effect.IdempotentOptions{Remembers: effect.Forever}).Remembers(); got != effect.Forever {
		t.Errorf("Remembers = %v, want Forever", got)
	}
	p := effect.Probed(nop, cannotSay, effect.ProbedOptions{Settled: time.Minute, ProbeAttempts: 3})
	if p.Settled() != time.Minute || p.ProbeAttempts() != 3 {
		t.Errorf("probed: %v %v", p.Settled(), p.ProbeAttempts())
	}
	if p := effect.Probed(nop, cannotSay, effect.ProbedOptions{Settled: effect.Immediately}); p.Settled() != 0 || p.ProbeAttempts() != effect.DefaultProbeAttempts {
		t.Errorf("probed, defaults: %v %v", p.Settled(), p.ProbeAttempts())
	}
	for _, e := range []effect.Effect{
		effect.AtMostOnceBatch(nopBatch, &effect.AtMostOnceOptions{MaxRunTime: time.Minute, MaxBatch: 2}),
		effect.AtLeastOnceBatch(nopBatch, &effect.AtLeastOnceOptions{MaxRunTime: time.Minute, MaxBatch: 2}),
	} {
		if e.Validate() != nil || e.MaxRunTime() != time.Minute || e.MaxBatch() != 2 || e.Remembers() != 0 || e.ProbeAttempts() != 0 {
			t.Errorf("%v: %v %v %v %v", e.Kind(), e.Validate(), e.MaxRunTime(), e.MaxBatch(), e.Remembers())
		}
	}
}

func TestProbeBackoff(t *testing.T) {
	probed := func(backoff time.Duration) effect.Effect {
		return effect.Probed(nop, cannotSay, effect.ProbedOptions{Settled: time.Second, ProbeBackoff: backoff})
	}
	tests := []struct {
		backoff time.Duration
		n       int
		want    time.Duration
	}{
		{0, 1, time.Second},
		{0, 2, 2 * time.Second},
		{0, 5, 16 * time.Second},
		{0, 7, time.Minute},
		{0, math.MaxInt, time.Minute},
		{0, 0, time.Second},
		{0, -3, time.Second},
		{10 * time.Millisecond, 3, 40 * time.Millisecond},
		{time.Hour, 1, time.Hour},
		{time.Hour, 9, time.Hour},
		{math.MaxInt64, 2, math.MaxInt64},
	}
	for _, tt := range tests {
		if got := probed(tt.backoff).ProbeBackoff(tt.n); got != tt.want {
			t.Errorf("backoff %v: ProbeBackoff(%d) = %v, want %v", tt.backoff, tt.n, got, tt.want)
		}
	}
}

func TestValidateSaysWhatToDo(t *testing.T) {
	tests := []struct {
		name   string
		effect effect.Effect
		want   []string
	}{
		{"no function", effect.AtMostOnce(nil, nil), []string{"effect.AtMostOnce: the function is nil"}},
		{"no batch function", effect.AtLeastOnceBatch(nil, nil), []string{"effect.AtLeastOnceBatch: the function is nil"}},
		{"remembers not given", effect.Idempotent(nop, effect.IdempotentOptions{}), []string{"Remembers is not given", "effect.Forever", "effect.Probed"}},
		{"remembers negative", effect.Idempotent(nop, effect.IdempotentOptions{Remembers: -time.Second}), []string{"Remembers is -1s"}},
		{"no probe", effect.Probed(nop, nil, effect.ProbedOptions{Settled: time.Second}), []string{"the probe is nil", "effect.AtMostOnce"}},
		{"settled not given", effect.Probed(nop, cannotSay, effect.ProbedOptions{}), []string{"Settled is not given", "effect.Immediately"}},
		{"settled negative", effect.Probed(nop, cannotSay, effect.ProbedOptions{Settled: -1}), []string{"Settled is -1ns"}},
		{
			"probe numbers", effect.Probed(nop, cannotSay, effect.ProbedOptions{Settled: 1, ProbeTimeout: -1, ProbeBackoff: -2, ProbeAttempts: -3}),
			[]string{"ProbeTimeout is -1ns", "0 for 10s", "ProbeBackoff is -2ns", "ProbeAttempts is -3", "0 for 5"},
		},
		{"run time", effect.AtMostOnce(nop, &effect.AtMostOnceOptions{MaxRunTime: -time.Minute}), []string{"MaxRunTime is -1m0s", "0 for 5m0s"}},
		{"run time, at least once", effect.AtLeastOnce(nop, &effect.AtLeastOnceOptions{MaxRunTime: -1}), []string{"MaxRunTime is -1ns"}},
		{"batch size negative", effect.IdempotentBatch(nopBatch, effect.IdempotentOptions{Remembers: 1, MaxBatch: -1}), []string{"MaxBatch is -1", "0 for 100"}},
		{"batch size for a single form", effect.AtMostOnce(nop, &effect.AtMostOnceOptions{MaxBatch: 10}), []string{"use effect.AtMostOnceBatch"}},
		{
			"everything at once", effect.ProbedBatch(nil, nil, effect.ProbedOptions{MaxRunTime: -1}),
			[]string{"the function is nil", "MaxRunTime is -1ns", "the probe is nil", "Settled is not given"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.effect.Validate()
			if err == nil {
				t.Fatal("Validate accepts it")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Validate = %q, want it to say %q", err, want)
				}
			}
		})
	}
}

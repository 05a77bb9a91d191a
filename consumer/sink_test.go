package consumer_test

import (
	"context"
	"sync"

	"github.com/oncefence/oncefence/effect"
)

// sink is what effects are applied to: it counts what it was asked to do and,
// where it dedupes, does it once for each effect id.
type sink struct {
	dedupes bool
	batch   bool // it takes several records at once
	// answer says what a request gets: an error, and whether it is applied all
	// the same.
	answer func(in effect.Input) (applied bool, err error)

	mu      sync.Mutex
	applied map[string]int // by effect id
	values  map[string]int // by payload
	asked   int
}

func newSink(dedupes bool, answer func(in effect.Input) (bool, error)) *sink {
	return &sink{dedupes: dedupes, answer: answer, applied: map[string]int{}, values: map[string]int{}}
}

func (s *sink) apply(_ context.Context, in effect.Input) (effect.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	applied, err := true, error(nil)
	if s.answer != nil {
		applied, err = s.answer(in)
	}
	if applied && (!s.dedupes || s.applied[in.EffectID] == 0) {
		s.applied[in.EffectID]++
		s.values[string(in.Payload)]++
	}
	return effect.Receipt{}, err
}

// ask is the probe.
func (s *sink) ask(_ context.Context, in effect.Input) (effect.Finding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.applied[in.EffectID] > 0 {
		return effect.Applied(effect.Receipt{}), nil
	}
	return effect.NotApplied(), nil
}

func (s *sink) count(value string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[value]
}

// kind makes the effect of a machine over the sink.
func (s *sink) kind(name string, m *machine) effect.Effect {
	f := m.effect(s.apply)
	all := func(ctx context.Context, in []effect.Input) []effect.Outcome {
		out := effect.NewOutcomes(in)
		for i := range in {
			out[i].Receipt, out[i].Err = f(ctx, in[i])
		}
		return out
	}
	settled := effect.ProbedOptions{Settled: effect.Immediately}
	switch {
	case name == "idempotent" && s.batch:
		return effect.IdempotentBatch(all, forever())
	case name == "idempotent":
		return effect.Idempotent(f, forever())
	case name == "probed" && s.batch:
		return effect.ProbedBatch(all, m.probe(s.ask), settled)
	case name == "probed":
		return effect.Probed(f, m.probe(s.ask), settled)
	case name == "at-most-once" && s.batch:
		return effect.AtMostOnceBatch(all, nil)
	case name == "at-most-once":
		return effect.AtMostOnce(f, nil)
	case s.batch:
		return effect.AtLeastOnceBatch(all, nil)
	}
	return effect.AtLeastOnce(f, nil)
}

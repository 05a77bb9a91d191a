package effecttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/effect"
)

// Defaults of Config.
const (
	DefaultLimit       = 5 * time.Second
	DefaultLandsWithin = 50 * time.Millisecond
	DefaultMaxSettled  = 2 * time.Second
)

// Config says what is tested and how the sink can be looked at.
type Config struct {
	// Effect is what is tested. Required.
	Effect effect.Effect
	// Restart returns the effect as a new process would make it, with nothing
	// of the old one's memory. Optional: without it a crash loses no memory
	// of the process, and an effect that dedupes there passes.
	Restart func() effect.Effect

	// Input is the record that is tried, with the payload, headers and
	// namespace that the effect needs. Each case gets a copy with a key and an
	// effect id of its own.
	Input effect.Input
	// NewInput takes the place of Input where the payload must differ from
	// case to case (a sink that knows orders only once). It is called with 1,
	// 2, 3 ... and each time returns another Key. An empty EffectID is derived
	// from Namespace and Key as the consumer does it.
	NewInput func(n int) effect.Input

	// Applied returns how often the sink holds the effect of in. It should
	// look for in.EffectID and count the bookings, rows or messages. Required.
	Applied func(ctx context.Context, in effect.Input) (times int, err error)

	// Refuse makes the sink refuse in for now (overloaded, unreachable,
	// locked) until restore is called. Optional; without it the row "refused
	// for now" is not tried.
	Refuse func(in effect.Input) (restore func())
	// Reject makes the sink refuse in for good (no such customer) until
	// restore is called. Optional; without it the row "refused for good" is
	// not tried.
	Reject func(in effect.Input) (restore func())

	// Limit is how long after the end of its context an effect may take to
	// return. 0: DefaultLimit (5 s). Negative is refused.
	Limit time.Duration
	// LandsWithin is how long after an effect returned what it sent may still
	// reach the sink; so long is waited before the sink is looked at. 0:
	// DefaultLandsWithin (50 ms). Negative: no wait.
	LandsWithin time.Duration
	// MaxSettled bounds how long is waited for ProbedOptions.Settled and for a
	// probe that cannot say. 0: DefaultMaxSettled (2 s). Negative: no wait.
	// With a Settled above it the probe is asked too early, which the report
	// notes.
	MaxSettled time.Duration
}

func (c Config) check() (Config, error) {
	var errs []error
	if err := c.Effect.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("the field Effect: %w", err))
	}
	if c.Applied == nil {
		errs = append(errs, errors.New("the field Applied is nil: give a function that counts how often the sink holds an effect id"))
	}
	if c.Limit < 0 {
		errs = append(errs, fmt.Errorf("the field Limit is %v: give a positive duration, or leave it 0 for %v", c.Limit, DefaultLimit))
	}
	c.Limit = orDefault(c.Limit, DefaultLimit)
	c.LandsWithin = orDefault(c.LandsWithin, DefaultLandsWithin)
	c.MaxSettled = orDefault(c.MaxSettled, DefaultMaxSettled)
	return c, errors.Join(errs...)
}

// orDefault takes negative for "none".
func orDefault(d, zero time.Duration) time.Duration {
	if d == 0 {
		return zero
	}
	return max(d, 0)
}

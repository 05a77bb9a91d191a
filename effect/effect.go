package effect

import (
	"errors"
	"math"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// Effect is a user's function together with its kind. It is made only by the
// constructors, never changes, and may be copied and used by many goroutines
// at once. The zero Effect is invalid and says so in Validate.
//
// Its methods are for the consumer loop and for tools; a program that consumes
// only builds an Effect and hands it over.
type Effect struct{ s *spec }

// spec is what a constructor made. An effect of a further kind brings its own
// way to be run as a further field; single, batch and the accessors stay.
type spec struct {
	kind   driver.Kind
	err    error
	batch  BatchFunc
	single Func
	probe  Probe
	shared *shared // of Transactional

	remembers     time.Duration
	settled       time.Duration
	probeTimeout  time.Duration
	probeBackoff  time.Duration
	probeAttempts int
	maxRunTime    time.Duration
	maxBatch      int
}

// Defaults of the options.
const (
	DefaultMaxRunTime    = 5 * time.Minute
	DefaultMaxBatch      = 100
	DefaultProbeTimeout  = 10 * time.Second
	DefaultProbeBackoff  = time.Second
	DefaultProbeAttempts = 5
	// MaxProbeBackoff is where the doubling of ProbedOptions.ProbeBackoff ends.
	MaxProbeBackoff = time.Minute
)

var errNoKind = errors.New("no effect kind: use effect.Transactional, effect.Idempotent, effect.Probed, effect.AtMostOnce or effect.AtLeastOnce (or their Batch forms)")

// Validate returns nil for an effect that can run. Else it names everything
// that was wrong with the arguments of the constructor, each with what to do.
func (e Effect) Validate() error {
	if e.s == nil {
		return errNoKind
	}
	return e.s.err
}

// Kind returns the kind, driver.KindNone for the zero Effect.
func (e Effect) Kind() driver.Kind {
	if e.s == nil {
		return driver.KindNone
	}
	return e.s.kind
}

// IsBatch reports whether the effect was made by a Batch constructor.
func (e Effect) IsBatch() bool {
	return e.s != nil && (e.s.batch != nil || e.s.shared != nil && e.s.shared.batch != nil)
}

// MaxBatch is the largest number of records that one call of the user's
// function may be given: 1 for a single form.
func (e Effect) MaxBatch() int {
	if !e.IsBatch() {
		return 1
	}
	return e.s.maxBatch
}

// MaxRunTime is how long one run may take. The loop ends the context then and
// renews the lease no longer.
func (e Effect) MaxRunTime() time.Duration {
	if e.s == nil {
		return DefaultMaxRunTime
	}
	return e.s.maxRunTime
}

// Remembers is how long the sink dedupes by effect id: Forever for a plain
// overwrite, 0 for kinds other than Idempotent.
func (e Effect) Remembers() time.Duration {
	if e.s == nil {
		return 0
	}
	return e.s.remembers
}

// Settled is how long after the end of an attempt the probe's answer is final.
// It is 0 for Immediately and for kinds other than Probed.
func (e Effect) Settled() time.Duration {
	if e.s == nil || e.s.settled == Immediately {
		return 0
	}
	return e.s.settled
}

// ProbeAttempts is how often the probe is asked before a record is parked, 0
// for kinds other than Probed.
func (e Effect) ProbeAttempts() int {
	if e.s == nil {
		return 0
	}
	return e.s.probeAttempts
}

// ProbeBackoff is the wait after the nth "cannot say", n from 1: the
// configured one, doubled each time, at most MaxProbeBackoff (or the
// configured one, where that is longer). 0 for kinds other than Probed.
func (e Effect) ProbeBackoff(n int) time.Duration {
	if e.s == nil {
		return 0
	}
	limit := max(e.s.probeBackoff, MaxProbeBackoff)
	wait := e.s.probeBackoff
	for ; n > 1 && wait < limit; n-- {
		if wait > math.MaxInt64/2 {
			return limit
		}
		wait *= 2
	}
	return min(wait, limit)
}

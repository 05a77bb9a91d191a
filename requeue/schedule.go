package requeue

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

const (
	// MaxDelays is the most retries that a schedule may have.
	MaxDelays = 20
	// MaxDelay is the longest delay of a schedule, and what a longer given
	// delay (Retry-After) is cut to.
	MaxDelay = 24 * time.Hour

	defaultJitter = 0.1
	maxJitter     = 0.5
)

var defaultDelays = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}

// Schedule says how often and after which delays a record is tried again. The
// zero Schedule is the default one: after 1 s, 5 s and 30 s, so a dead letter
// follows 36 s of waiting.
type Schedule struct {
	// Delays are the delays before the first, second, ... retry. Nil means 1 s,
	// 5 s, 30 s; empty but not nil means no retries: a temporary error goes to
	// the dead letters at once.
	Delays []time.Duration
	// Jitter spreads a delay d over [d*(1-Jitter), d*(1+Jitter)], so that
	// records that failed together do not come back together. 0 means 0.1,
	// negative none; more than 0.5 is refused.
	Jitter float64
	// Retired are delays of an earlier schedule. Their topics are still read, so
	// that copies which wait there are not left behind, but nothing new goes
	// there. Nil means none.
	Retired []time.Duration
}

// Validate checks the schedule. Delays are between 1 ms and [MaxDelay] in whole
// milliseconds (topic names say no less), at most [MaxDelays] of them, and none
// is shorter than the one before: a back-off that turns around is nearly always
// a typing error (5m for 5h), and has no use.
func (s Schedule) Validate() error {
	if !(s.Jitter <= maxJitter) {
		return fmt.Errorf("schedule: jitter %v: use at most %v, negative for none", s.Jitter, maxJitter)
	}
	if len(s.Delays) > MaxDelays {
		return fmt.Errorf("schedule: %d delays: use at most %d", len(s.Delays), MaxDelays)
	}
	for i, d := range s.Delays {
		if err := checkDelay(d); err != nil {
			return fmt.Errorf("schedule: delay %d: %w", i+1, err)
		}
		if i > 0 && d < s.Delays[i-1] {
			return fmt.Errorf("schedule: delay %d (%v) is shorter than the one before (%v): put them in order", i+1, d, s.Delays[i-1])
		}
	}
	for i, d := range s.Retired {
		if err := checkDelay(d); err != nil {
			return fmt.Errorf("schedule: retired delay %d: %w", i+1, err)
		}
	}
	return nil
}

func checkDelay(d time.Duration) error {
	switch {
	case d < time.Millisecond:
		return fmt.Errorf("%v: use 1ms or more", d)
	case d > MaxDelay:
		return fmt.Errorf("%v: use %v or less", d, MaxDelay)
	case d%time.Millisecond != 0:
		return errors.New(d.String() + ": use whole milliseconds")
	}
	return nil
}

// Steps returns the number of retries.
func (s Schedule) Steps() int { return len(s.delays()) }

// Delay returns how long to wait before retry number step+1, in whole
// milliseconds: the schedule's delay with jitter, or the given one (what a sink
// asked for, 0 for nothing) if that is longer. A given delay is never
// shortened by jitter, only lengthened by up to the same share, and cut to
// [MaxDelay]. A step behind the last one counts as the last.
//
// random returns numbers in [0,1); nil means math/rand/v2.
func (s Schedule) Delay(step int, given time.Duration, random func() float64) time.Duration {
	if random == nil {
		random = rand.Float64
	}
	jitter, r := s.jitter(), random()
	var d time.Duration
	if delays := s.delays(); len(delays) > 0 {
		full := delays[min(max(step, 0), len(delays)-1)]
		d = full + time.Duration(float64(full)*jitter*(2*r-1))
	}
	if given = min(given, MaxDelay); given > d {
		d = min(given+time.Duration(float64(given)*jitter*r), MaxDelay)
	}
	return max(wholeMillis(d), time.Millisecond)
}

// Budget returns how long a record waits in all before it is a dead letter, if
// no longer delay is given and jitter is nothing: the sum of the delays, 36 s by
// default. Jitter makes it at most that share longer or shorter; what running
// takes comes on top.
func (s Schedule) Budget() time.Duration {
	var sum time.Duration
	for _, d := range s.delays() {
		sum += d
	}
	return sum
}

// delays returns the delays in use.
func (s Schedule) delays() []time.Duration {
	if s.Delays == nil {
		return defaultDelays
	}
	return s.Delays
}

// jitter returns the share in use.
func (s Schedule) jitter() float64 {
	switch {
	case s.Jitter == 0:
		return defaultJitter
	case s.Jitter < 0:
		return 0
	default:
		return s.Jitter
	}
}

// shortest returns the least that [Schedule.Delay] makes of a delay.
func (s Schedule) shortest(d time.Duration) time.Duration {
	return time.Duration(math.Floor(float64(d) * (1 - s.jitter())))
}

// longest returns the most that [Schedule.Delay] makes of a delay.
func (s Schedule) longest(d time.Duration) time.Duration {
	return wholeMillis(time.Duration(math.Ceil(float64(d) * (1 + s.jitter()))))
}

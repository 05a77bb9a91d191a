package effect

import (
	"errors"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// checks gathers what is wrong with the arguments of a constructor.
type checks struct {
	maker string
	errs  []error
}

func (c *checks) failf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("effect.%s: %w", c.maker, fmt.Errorf(format, args...)))
}

func (c *checks) positive(name string, value, whenZero time.Duration) time.Duration {
	if value < 0 {
		c.failf("%s is %v: give a positive duration, or leave it 0 for %v", name, value, whenZero)
	}
	if value <= 0 {
		return whenZero
	}
	return value
}

func (c *checks) count(name string, value, whenZero int) int {
	if value < 0 {
		c.failf("%s is %d: give a positive number, or leave it 0 for %d", name, value, whenZero)
	}
	if value <= 0 {
		return whenZero
	}
	return value
}

// common fills in what every kind has.
func (c *checks) common(kind driver.Kind, f Func, batch BatchFunc, isBatch bool, maxRunTime time.Duration, maxBatch int) *spec {
	s := &spec{kind: kind, single: f, batch: batch, maxBatch: 1}
	if f == nil && batch == nil {
		c.failf("the function is nil: give the function that applies the effect")
	}
	s.maxRunTime = c.positive("MaxRunTime", maxRunTime, DefaultMaxRunTime)
	switch {
	case isBatch:
		s.maxBatch = c.count("MaxBatch", maxBatch, DefaultMaxBatch)
	case maxBatch != 0:
		c.failf("MaxBatch is %d, but this form takes one record at a time: use effect.%sBatch, or leave MaxBatch 0", maxBatch, c.maker)
	}
	return s
}

func (c *checks) finish(s *spec) Effect {
	s.err = errors.Join(c.errs...)
	return Effect{s: s}
}

package consumer

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// KeptSteps implements effect.Keeper.
func (it *item) KeptSteps() []driver.Step {
	if it.steps != nil {
		return it.steps
	}
	return it.hold.Record().Steps
}

// DoubtfulStart implements effect.Keeper.
func (it *item) DoubtfulStart() bool { return it.doubt }

// KeepSteps implements effect.Keeper. It is called by the effect, in its
// worker, and waits for the store until ctx ends: the next step must not start
// before this one is kept.
func (it *item) KeepSteps(ctx context.Context, steps []driver.Step) error {
	l := it.part.loop
	t := it.hold.Keep(append([]driver.Step(nil), steps...))
	for tries := 0; ; tries++ {
		request, cancel := context.WithTimeout(ctx, l.requestTime)
		answer := l.space.Apply(request, []driver.Transition{t})[0]
		cancel()
		switch {
		case answer.Err == nil && answer.Outcome == driver.Refused:
			return fmt.Errorf("the key is %s with token %d, this holder's is %d", answer.Record.State, answer.Record.Token, it.hold.Token())
		case answer.Err == nil:
			it.steps = t.Steps
			return nil
		}
		select {
		case <-time.After(backoff(tries)):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), answer.Err)
		}
	}
}

// appliedSteps lists the journal's steps for a dead letter; "" without any.
func (it *item) appliedSteps() string {
	if it.hold == nil || len(it.KeptSteps()) == 0 {
		return ""
	}
	var names []string
	for _, s := range it.KeptSteps() {
		names = append(names, s.Name)
	}
	return "steps applied: " + strings.Join(names, ", ")
}

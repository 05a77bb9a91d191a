package consumertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Rule is one sentence of the contract.
type Rule struct {
	// Name is a short path such as "pause/stops".
	Name string
	// Says is what a source must do.
	Says  string
	check func(s *scene)
	needs need
}

// need is what a rule asks of a harness beyond a source.
type need uint8

const (
	needNothing need = iota
	needTwo
	needLose
	needSession
)

func (n need) missing(h Harness) string {
	switch {
	case n == needTwo && h.Alone:
		return "the harness has one member only"
	case n == needLose && h.Lose == nil:
		return "the harness has no Lose"
	case n == needSession && h.Session <= 0:
		return "the harness has no Session"
	}
	return ""
}

// Rules lists the rules in the order in which they are checked.
func Rules() []Rule {
	return slices.Concat(startRules, deliveryRules, positionRules, commitRules, pauseRules, pollRules, groupRules, lostRules, closeRules)
}

// Broken is a rule that the source broke.
type Broken struct {
	Rule Rule
	Err  error
}

// Error names the rule in words.
func (b *Broken) Error() string {
	return fmt.Sprintf("%s: the rule is: %s: %v", b.Rule.Name, b.Rule.Says, b.Err)
}

// Unwrap gives what was seen.
func (b *Broken) Unwrap() error { return b.Err }

// Report says what a run found.
type Report struct {
	Kept    []Rule
	Broken  []*Broken
	Skipped []Rule // for want of something in the harness
}

// Err is nil if no rule was broken; otherwise it joins the broken ones.
func (r Report) Err() error {
	errs := make([]error, len(r.Broken))
	for i, b := range r.Broken {
		errs[i] = b
	}
	return errors.Join(errs...)
}

// Run checks every rule, one after the other, and goes on after a broken one.
// It blocks until all are checked or ctx ends; the rules that ctx cut off are
// reported as broken.
func Run(ctx context.Context, h Harness) (report Report) {
	for _, rule := range Rules() {
		skipped, err := rule.run(ctx, h)
		switch {
		case err != nil:
			report.Broken = append(report.Broken, &Broken{Rule: rule, Err: err})
		case skipped != "":
			report.Skipped = append(report.Skipped, rule)
		default:
			report.Kept = append(report.Kept, rule)
		}
	}
	return report
}

// run checks the rule with topics and a group of its own.
func (r Rule) run(ctx context.Context, h Harness) (skipped string, err error) {
	if h, err = h.withDefaults(); err != nil {
		return "", err
	}
	if skipped = r.needs.missing(h); skipped != "" {
		return skipped, nil
	}
	s := newScene(ctx, h)
	defer func() {
		switch p := recover().(type) {
		case nil:
		case seen:
			err = p.err
		default:
			panic(p)
		}
		err = errors.Join(err, s.end())
	}()
	r.check(s)
	return "", nil
}

package fencetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Rule is one sentence of the protocol.
type Rule struct {
	// Name is a short path such as "claim/held".
	Name string
	// Says is what a store must do.
	Says  string
	check func(s *scene)
	needs need
}

// need is what a rule asks of a harness beyond a store.
type need uint8

const (
	needNothing need = iota
	needSecond
	needFreeTime
)

func (n need) missing(h Harness) string {
	switch {
	case n == needSecond && h.Second == nil:
		return "the harness has no Second"
	case n == needFreeTime && !h.FreeTime:
		return "waiting costs time on this harness"
	}
	return ""
}

// Rules lists the rules in the order in which they are checked.
func Rules() []Rule {
	return slices.Concat(claimRules, takeoverRules, reclaimRules, nonceRules, holdRules, releaseRules, verdictRules,
		endRules, sealRules, resolveRules, timeRules, readRules, batchRules, lifeRules, matrixRules, faultRules)
}

// Broken is a rule that the store broke.
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
func Run(ctx context.Context, h Harness) Report {
	return runRules(ctx, h, Rules())
}

func runRules(ctx context.Context, h Harness, rules []Rule) (report Report) {
	for _, rule := range rules {
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

// run checks the rule on a store of its own.
func (r Rule) run(ctx context.Context, h Harness) (skipped string, err error) {
	if h, err = h.withDefaults(); err != nil {
		return "", err
	}
	if skipped = r.needs.missing(h); skipped != "" {
		return skipped, nil
	}
	store, err := h.Open(ctx)
	if err != nil {
		return "", fmt.Errorf("open the store: %w", err)
	}
	defer func() {
		if closeErr := store.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close the store: %w", closeErr)
		}
	}()
	defer func() {
		switch p := recover().(type) {
		case nil:
		case seen:
			err = p.err
		default:
			panic(p)
		}
	}()
	r.check(newScene(ctx, h, store))
	return "", nil
}

package effecttest

import (
	"context"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence/driver"
)

// testCase is a row before it is tried.
type testCase struct {
	name  string
	kinds []driver.Kind // nil: every kind
	batch bool          // only for batch forms
	rule  string
	try   func(h *harness, in effect.Input) verdict
}

const (
	idempotent  = driver.KindIdempotent
	probed      = driver.KindProbed
	atMostOnce  = driver.KindAtMostOnce
	atLeastOnce = driver.KindAtLeastOnce
)

var cases = []testCase{
	{"first run", nil, false, "a fresh effect id is applied once, and the effect says so", firstRun},
	{"run twice", []driver.Kind{idempotent, atLeastOnce}, false, "run a second time by the same holder, it says applied; an idempotent sink still holds it once", runTwice},
	{"crash before the effect", []driver.Kind{idempotent, probed, atLeastOnce}, false, "a second attempt whose first never reached the sink applies it; a probe says not applied before", crashBefore},
	{"crash after the effect", []driver.Kind{idempotent, probed, atLeastOnce}, false, "when the answer of the first attempt is lost, the next holder brings the record to an end, and the sink holds one effect", crashAfter},
	{"context already over", nil, false, "with a context that is over it returns in time; a probed or at-most-once effect then starts nothing at the sink", contextOver},
	{"answered late", nil, false, "when its context ends while it runs, what it answers then is true, and the record ends with one effect", answeredLate},
	{"resumed as a zombie", []driver.Kind{idempotent, probed}, false, "an older holder that goes on after a newer one has finished brings about no second effect", zombie},
	{"refused for now", nil, false, "while the sink refuses it says temporary and nothing is applied; later it is applied once", refusedForNow},
	{"refused for good", nil, false, "when the sink refuses for good it says permanent and nothing is applied", refusedForGood},
	{"several in one call", nil, true, "every record of one call is applied once and answered at its own place", several},
}

func (c testCase) concerns(e effect.Effect) bool {
	if c.batch && !e.IsBatch() {
		return false
	}
	if c.kinds == nil {
		return true
	}
	for _, kind := range c.kinds {
		if kind == e.Kind() {
			return true
		}
	}
	return false
}

// Run tries every case that concerns the kind of the effect, one after the
// other, and returns the report. It blocks for as long as the effect runs, plus
// the waits of Config. If the first run fails the others are not tried. A wrong
// Config is a failed row "configuration". The end of ctx ends the test; what is
// left is then not tried.
//
// An effect that does not return at all leaves a goroutine behind.
func Run(ctx context.Context, c Config) Report {
	c, err := c.check()
	report := Report{Kind: c.Effect.Kind()}
	if err != nil {
		report.Rows = []Row{{Name: "configuration", Rule: "the test knows the effect and can look into the sink", Result: Failed, Verdict: err.Error()}}
		return report
	}
	h := newHarness(ctx, c)
	firstFailed := false
	for _, tc := range cases {
		if !tc.concerns(c.Effect) {
			continue
		}
		v := notTried("the first run failed")
		if !firstFailed {
			v = h.try(tc)
		}
		firstFailed = firstFailed || len(report.Rows) == 0 && v.result != Passed
		report.Rows = append(report.Rows, Row{Name: tc.name, Rule: tc.rule, Result: v.result, Verdict: v.text})
	}
	return report
}

func (h *harness) try(tc testCase) verdict {
	if err := h.ctx.Err(); err != nil {
		return notTried("the test was stopped: %v", err)
	}
	in, err := h.input()
	if err != nil {
		return failed("%v", err)
	}
	h.note = ""
	v := tc.try(h, in)
	if v.result == Passed {
		v.text = h.note
	}
	return v
}

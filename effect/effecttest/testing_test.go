package effecttest

import (
	"fmt"
	"testing"

	"github.com/oncefence/oncefence/effect"
)

// recorder is a test that writes down what is done to it.
type recorder struct {
	testing.TB
	did string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Errorf(f string, a ...any) { r.did = "error: " + fmt.Sprintf(f, a...) }
func (r *recorder) Skip(a ...any)             { r.did = "skip: " + fmt.Sprint(a...) }
func (r *recorder) Log(a ...any)              { r.did = "log: " + fmt.Sprint(a...) }

func TestRowsAsSubtests(t *testing.T) {
	for _, tt := range []struct {
		row  Row
		want string
	}{
		{Row{Result: Passed, Rule: "once"}, ""},
		{Row{Result: Passed, Rule: "once", Verdict: "asked early"}, "log: asked early"},
		{Row{Result: Failed, Rule: "once", Verdict: "twice"}, "error: twice\nrule: once"},
		{Row{Result: NotTried, Rule: "once", Verdict: "give Refuse"}, "skip: NOT TRIED: give Refuse"},
	} {
		r := &recorder{}
		show(r, tt.row)
		if r.did != tt.want {
			t.Errorf("%+v: %q, want %q", tt.row, r.did, tt.want)
		}
	}
}

// Test as a user calls it.
func TestTest(t *testing.T) {
	rows := map[string]bool{}
	f := func(in effect.Input) { rows[in.EffectID] = true }
	Test(t, Config{
		Effect: effect.Idempotent(upsert(f), effect.IdempotentOptions{Remembers: effect.Forever}),
		Applied: func(_ ctx, in effect.Input) (int, error) {
			if rows[in.EffectID] {
				return 1, nil
			}
			return 0, nil
		},
		Refuse:      func(effect.Input) func() { refuse = effect.Temporary; return func() { refuse = nil } },
		Reject:      func(effect.Input) func() { refuse = effect.Permanent; return func() { refuse = nil } },
		LandsWithin: -1,
	})
	if len(rows) == 0 {
		t.Error("Test did not run the effect")
	}
}

var refuse func(error) error

func upsert(do func(effect.Input)) effect.Func {
	return func(_ ctx, in effect.Input) (effect.Receipt, error) {
		if refuse != nil {
			return effect.Receipt{}, refuse(nil)
		}
		do(in)
		return effect.Receipt{}, nil
	}
}

package effect

import "context"

// Probe asks the sink what became of in.EffectID. It must change nothing
// there. Its answer is taken as final once ProbedOptions.Settled has passed
// since the end of the last attempt: a Probe that says NotApplied about an
// effect that is still on its way makes the effect happen twice. An error
// means that it cannot say now; the Finding is then not read.
type Probe func(ctx context.Context, in Input) (Finding, error)

// Finding is the answer of a Probe. The zero Finding cannot say.
type Finding struct {
	state   findingState
	receipt Receipt
}

type findingState uint8

const (
	findingCannotSay findingState = iota
	findingApplied
	findingNotApplied
)

// Applied says that the sink holds the effect. The receipt is sealed as if the
// effect itself had returned it.
func Applied(r Receipt) Finding { return Finding{state: findingApplied, receipt: r} }

// NotApplied says that the sink does not hold the effect and that no attempt
// which ended longer than ProbedOptions.Settled ago can still bring it about.
func NotApplied() Finding { return Finding{state: findingNotApplied} }

// CannotSay says that the sink does not know: the probe is asked again after a
// wait and the record is parked after ProbedOptions.ProbeAttempts askings.
func CannotSay() Finding { return Finding{} }

// Applied returns the receipt and true when the sink holds the effect.
func (f Finding) Applied() (Receipt, bool) { return f.receipt, f.state == findingApplied }

// NotApplied reports whether the sink said that it does not hold the effect.
func (f Finding) NotApplied() bool { return f.state == findingNotApplied }

// CannotSay reports whether the sink could not say.
func (f Finding) CannotSay() bool { return f.state == findingCannotSay }

// String returns "applied", "not applied" or "cannot say", without the
// receipt.
func (f Finding) String() string {
	switch f.state {
	case findingApplied:
		return "applied"
	case findingNotApplied:
		return "not applied"
	case findingCannotSay:
	}
	return "cannot say"
}

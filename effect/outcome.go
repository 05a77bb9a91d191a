package effect

import (
	"context"
	"errors"
)

// Receipt is what an applied effect leaves: it is sealed with the key, and
// every duplicate of the record is answered with it.
type Receipt struct {
	// EffectID is the sink's own id of what it did, such as the number of a
	// booking. Empty: our Input.EffectID is sealed.
	EffectID string
	// Payload is kept with the key for as long as done records are kept, so
	// it should be small. The fence refuses one that is over its limit.
	Payload []byte
}

// Func is an effect on one record. A nil error says that it was applied. Any
// other answer is read by Classify: only errors made with Temporary,
// Permanent or Undecodable say that nothing was applied; a plain error, a
// panic and a cancelled or expired context leave the outcome unknown.
//
// The context ends when the lease on the key cannot be counted on any more.
// An effect should then stop soon, must start nothing new at the sink, and may
// still return its true answer late. The Receipt is read only when the error
// is nil.
type Func func(ctx context.Context, in Input) (Receipt, error)

// BatchFunc is an effect on several records. It answers one Outcome for each
// Input, at the same place of the slice; any other number makes the outcome of
// every record unknown. No key is twice in one slice. The context ends with
// the earliest lease among the records.
//
// The zero Outcome says "applied": a function that may stop half way begins
// with NewOutcomes instead of make, so that what it never reached is unknown.
type BatchFunc func(ctx context.Context, in []Input) []Outcome

// Outcome is the answer for one record: what Func returns as two values.
type Outcome struct {
	// Receipt is read only when Err is nil.
	Receipt Receipt
	// Err is nil when the effect was applied, else it is read by Classify.
	Err error
}

// Class reads Err; see Classify.
func (o Outcome) Class() Class {
	c, _ := Classify(o.Err)
	return c
}

// ErrNotAnswered stands in every outcome of NewOutcomes until the effect
// overwrites it. It is of ClassUnknown.
var ErrNotAnswered = errors.New("the batch effect did not answer for this record: set an outcome for every record it is given")

// NewOutcomes returns one outcome for each input, all of them unknown
// (ErrNotAnswered). A BatchFunc that fills it in can return at any point
// without saying "applied" about what it never touched.
func NewOutcomes(in []Input) []Outcome {
	return unknownOutcomes(len(in), ErrNotAnswered)
}

func unknownOutcomes(n int, err error) []Outcome {
	out := make([]Outcome, n)
	for i := range out {
		out[i].Err = err
	}
	return out
}

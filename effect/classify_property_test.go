package effect_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
)

// said is what an error must be read as.
type said struct {
	class  effect.Class
	delay  time.Duration
	reason string
}

// randomError builds an error together with what it says, by the rules in the
// documentation of Classify.
func randomError(r *rand.Rand, depth int) (said, error) {
	if depth == 0 {
		leaves := []error{errSink, context.Canceled, context.DeadlineExceeded, &effect.PanicError{Value: effect.Temporary(errSink)}}
		return said{}, leaves[r.IntN(len(leaves))]
	}
	innerSaid, inner := randomError(r, r.IntN(depth))
	delay := time.Duration(r.IntN(100)-20) * time.Second
	switch r.IntN(9) {
	case 0:
		return said{class: effect.ClassTemporary}, effect.Temporary(inner)
	case 1:
		return said{class: effect.ClassTemporary, delay: max(delay, 0)}, effect.TemporaryAfter(inner, delay)
	case 2:
		return said{class: effect.ClassPermanent}, effect.Permanent(inner)
	case 3:
		return said{class: effect.ClassPermanent, reason: effect.ReasonUndecodable}, effect.Undecodable(inner)
	case 4:
		return said{delay: max(delay, 0)}, effect.UnknownAfter(inner, delay)
	case 5:
		return innerSaid, fmt.Errorf("wrapped: %w", inner)
	case 6:
		return innerSaid, wrapper{inner}
	case 7:
		return said{}, &effect.PanicError{Where: "effect", Value: inner}
	default:
		otherSaid, other := randomError(r, r.IntN(depth))
		return joined(innerSaid, otherSaid), errors.Join(inner, other)
	}
}

func joined(a, b said) said {
	delay := max(a.delay, b.delay)
	switch {
	case a.class == effect.ClassUnknown:
		// What comes behind an unknown part is not looked at.
		return said{delay: a.delay}
	case b.class == effect.ClassUnknown:
		return said{delay: delay}
	case a.class == effect.ClassPermanent:
		return said{class: a.class, reason: a.reason}
	case b.class == effect.ClassPermanent:
		return said{class: b.class, reason: b.reason}
	}
	return said{class: effect.ClassTemporary, delay: delay}
}

func TestClassifyOfRandomErrors(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test's dice
	seen := map[effect.Class]int{}
	for range 5000 {
		want, err := randomError(r, 6)
		class, delay := effect.Classify(err)
		if class != want.class || delay != want.delay || effect.Reason(err) != want.reason {
			t.Fatalf("seed %d: Classify(%#v) = %v, %v, reason %q; want %+v", seed, err, class, delay, effect.Reason(err), want)
		}
		// A plain wrapper changes nothing, a classification everything.
		if again, _ := effect.Classify(fmt.Errorf("once more: %w", err)); again != class {
			t.Fatalf("seed %d: wrapped, %v becomes %v", seed, class, again)
		}
		if again, _ := effect.Classify(effect.Permanent(err)); again != effect.ClassPermanent {
			t.Fatalf("seed %d: Permanent around %v is %v", seed, err, again)
		}
		seen[class]++
	}
	for _, class := range []effect.Class{effect.ClassUnknown, effect.ClassTemporary, effect.ClassPermanent} {
		if seen[class] < 100 {
			t.Errorf("seed %d: only %d of class %v, the dice are loaded", seed, seen[class], class)
		}
	}
}

package effect

import "time"

// Class is what an error says about its attempt. The zero Class is unknown.
type Class uint8

const (
	// ClassUnknown says nothing: the effect may or may not have been applied.
	ClassUnknown Class = iota
	// ClassApplied is the class of a nil error.
	ClassApplied
	// ClassTemporary: nothing was applied, a later attempt may succeed.
	ClassTemporary
	// ClassPermanent: nothing was applied, no later attempt will succeed.
	ClassPermanent
)

// String returns "unknown", "applied", "temporary" or "permanent".
func (c Class) String() string {
	switch c {
	case ClassApplied:
		return "applied"
	case ClassTemporary:
		return "temporary"
	case ClassPermanent:
		return "permanent"
	case ClassUnknown:
	}
	return "unknown"
}

// Classify says what err means for the attempt that returned it, and how long
// the sink asked to be left alone (0: it did not ask).
//
//   - nil is ClassApplied.
//   - Going from the outside in, the first error made by this package decides:
//     Permanent(Temporary(err)) is permanent, and so is
//     fmt.Errorf("order: %w", Permanent(err)).
//   - A *PanicError is unknown, whatever was panicked with.
//   - Where an error wraps several (errors.Join, fmt.Errorf with two %w), every
//     part must say that nothing was applied: one unknown part makes the whole
//     unknown, since something may have been applied there. Of parts that are
//     all classified the whole is permanent if one is, for then a further
//     attempt as a whole cannot succeed; the delay is the longest. To overrule
//     this put the classification outside: Temporary(errors.Join(a, b)).
//   - Everything else, context errors included, is unknown.
//
// A Permanent or Temporary speaks of its own attempt only. What an earlier
// attempt left in doubt stays in doubt.
func Classify(err error) (Class, time.Duration) {
	if err == nil {
		return ClassApplied, 0
	}
	v := classify(err)
	return v.class, v.delay
}

// Reason returns ReasonUndecodable if the classification that decides about
// err (see Classify) was made with Undecodable, else "".
func Reason(err error) string {
	if err == nil {
		return ""
	}
	return classify(err).reason
}

type verdict struct {
	class  Class
	delay  time.Duration
	reason string
}

func classify(err error) verdict {
	for err != nil {
		switch e := err.(type) { //nolint:errorlint // walks the tree itself: the outermost classification wins
		case *classified:
			return verdict{class: e.class, delay: e.delay, reason: e.reason}
		case *PanicError:
			return verdict{}
		case interface{ Unwrap() []error }:
			return classifyParts(e.Unwrap())
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return verdict{}
		}
	}
	return verdict{}
}

func classifyParts(parts []error) verdict {
	var whole verdict
	for _, part := range parts {
		if part == nil {
			continue
		}
		v := classify(part)
		switch {
		case v.class == ClassUnknown:
			// The delay is kept: it is a wish, not a statement.
			return verdict{delay: max(whole.delay, v.delay)}
		case v.class == ClassPermanent && whole.class != ClassPermanent:
			whole = verdict{class: ClassPermanent, delay: whole.delay, reason: v.reason}
		case whole.class == ClassUnknown:
			whole.class = v.class
		}
		whole.delay = max(whole.delay, v.delay)
	}
	if whole.class == ClassPermanent {
		whole.delay = 0
	}
	return whole
}

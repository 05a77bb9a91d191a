package effect

import (
	"fmt"
	"time"
)

// ReasonUndecodable is the Reason of an error made with Undecodable. It is
// also the reason in the dead letter.
const ReasonUndecodable = "undecodable"

// Temporary says: nothing was applied, and a later attempt may succeed. The
// record goes the way of the retry schedule. Say it only on proof: nothing
// left the process (connection refused, name not resolved), or the sink
// refused before it worked. A time-out after a request was written is no
// proof; return such an error as it is.
//
// errors.Is and errors.As reach err. What err is does not matter: a context
// error inside Temporary is temporary, because the author says so. A nil err
// is a temporary error all the same.
func Temporary(err error) error {
	return &classified{class: ClassTemporary, cause: err}
}

// TemporaryAfter is Temporary with the least time to wait before the next
// attempt, as a sink asks for with Retry-After. A negative delay counts as 0,
// which leaves the wait to the schedule.
func TemporaryAfter(err error, delay time.Duration) error {
	return &classified{class: ClassTemporary, cause: err, delay: max(delay, 0)}
}

// Permanent says: nothing was applied by this attempt and no later attempt
// will succeed. The record becomes a dead letter at once. errors.Is and
// errors.As reach err; a nil err is a permanent error all the same.
func Permanent(err error) error {
	return &classified{class: ClassPermanent, cause: err}
}

// Undecodable is Permanent for a payload that the effect cannot read. Reason
// answers ReasonUndecodable for it, which then stands in the dead letter. The
// text of err is logged: keep the payload out of it.
func Undecodable(err error) error {
	return &classified{class: ClassPermanent, cause: err, reason: ReasonUndecodable}
}

// UnknownAfter leaves the outcome unknown, as a plain error does, and hands on
// how long the sink asks to be left alone (a 503 with Retry-After). The kinds
// that run an unknown outcome again wait at least so long. It also takes back
// a classification: Temporary inside UnknownAfter is unknown. A negative delay
// counts as 0.
func UnknownAfter(err error, delay time.Duration) error {
	return &classified{class: ClassUnknown, cause: err, delay: max(delay, 0)}
}

type classified struct {
	class  Class
	cause  error
	delay  time.Duration
	reason string
}

func (e *classified) Error() string {
	what := e.class.String()
	if e.reason != "" {
		what = e.reason
	}
	if e.delay > 0 {
		what = fmt.Sprintf("%s (again after %v at the earliest)", what, e.delay)
	}
	if e.cause == nil {
		return what + " error of the effect, without a cause"
	}
	return what + ": " + e.cause.Error()
}

func (e *classified) Unwrap() error { return e.cause }

// Reason returns ReasonUndecodable for an error made with Undecodable, else "".
func (e *classified) Reason() string { return e.reason }

package effect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
)

var errSink = errors.New("sink said no")

// wrapper is a plain error type of a user, transparent for Classify.
type wrapper struct{ err error }

func (w wrapper) Error() string { return "wrapped: " + w.err.Error() }
func (w wrapper) Unwrap() error { return w.err }

// several wraps any number of errors, nil ones too.
type several []error

func (s several) Error() string   { return "several" }
func (s several) Unwrap() []error { return s }

func TestClassify(t *testing.T) {
	temporary := effect.Temporary(errSink)
	permanent := effect.Permanent(errSink)
	tests := []struct {
		name  string
		err   error
		class effect.Class
		delay time.Duration
	}{
		{"nil", nil, effect.ClassApplied, 0},
		{"plain", errSink, effect.ClassUnknown, 0},
		{"context cancelled", context.Canceled, effect.ClassUnknown, 0},
		{"context expired", context.DeadlineExceeded, effect.ClassUnknown, 0},
		{"temporary", temporary, effect.ClassTemporary, 0},
		{"temporary without cause", effect.Temporary(nil), effect.ClassTemporary, 0},
		{"temporary around context error", effect.Temporary(context.DeadlineExceeded), effect.ClassTemporary, 0},
		{"temporary after", effect.TemporaryAfter(errSink, 30*time.Second), effect.ClassTemporary, 30 * time.Second},
		{"temporary after negative", effect.TemporaryAfter(errSink, -time.Second), effect.ClassTemporary, 0},
		{"permanent", permanent, effect.ClassPermanent, 0},
		{"permanent without cause", effect.Permanent(nil), effect.ClassPermanent, 0},
		{"undecodable", effect.Undecodable(errSink), effect.ClassPermanent, 0},
		{"unknown after", effect.UnknownAfter(errSink, time.Minute), effect.ClassUnknown, time.Minute},
		{"unknown after negative", effect.UnknownAfter(errSink, -time.Minute), effect.ClassUnknown, 0},
		{"panic", &effect.PanicError{Value: temporary}, effect.ClassUnknown, 0},

		{"wrapped with %w", fmt.Errorf("order: %w", effect.TemporaryAfter(errSink, time.Second)), effect.ClassTemporary, time.Second},
		{"wrapped in a type", wrapper{permanent}, effect.ClassPermanent, 0},
		{"wrapper around nothing known", wrapper{errSink}, effect.ClassUnknown, 0},
		{"permanent around temporary", effect.Permanent(effect.TemporaryAfter(errSink, time.Second)), effect.ClassPermanent, 0},
		{"temporary around permanent", effect.Temporary(permanent), effect.ClassTemporary, 0},
		{"unknown around temporary", effect.UnknownAfter(temporary, 0), effect.ClassUnknown, 0},
		{"temporary around a panic", effect.Temporary(&effect.PanicError{Value: "x"}), effect.ClassTemporary, 0},

		{"join of temporaries", errors.Join(effect.TemporaryAfter(errSink, time.Second), effect.TemporaryAfter(errSink, time.Minute)), effect.ClassTemporary, time.Minute},
		{"join with permanent last", errors.Join(effect.TemporaryAfter(errSink, time.Second), permanent), effect.ClassPermanent, 0},
		{"join with permanent first", errors.Join(permanent, effect.TemporaryAfter(errSink, time.Second)), effect.ClassPermanent, 0},
		{"join with plain last", errors.Join(temporary, permanent, errSink), effect.ClassUnknown, 0},
		{"join with plain first", errors.Join(errSink, permanent), effect.ClassUnknown, 0},
		{"join with context error", errors.Join(temporary, context.Canceled), effect.ClassUnknown, 0},
		{"join with panic", errors.Join(temporary, &effect.PanicError{Value: "x"}), effect.ClassUnknown, 0},
		{"join keeps the wish to wait", errors.Join(effect.TemporaryAfter(errSink, time.Minute), effect.UnknownAfter(errSink, time.Second)), effect.ClassUnknown, time.Minute},
		{"two %w", fmt.Errorf("%w and %w", temporary, errSink), effect.ClassUnknown, 0},
		{"join inside temporary", effect.Temporary(errors.Join(temporary, errSink)), effect.ClassTemporary, 0},
		{"nested join", errors.Join(temporary, errors.Join(temporary, wrapper{permanent})), effect.ClassPermanent, 0},
		{"several with nil parts", several{nil, temporary, nil}, effect.ClassTemporary, 0},
		{"several without parts", several{}, effect.ClassUnknown, 0},
		{"wrapper of nil", several{nil}, effect.ClassUnknown, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			class, delay := effect.Classify(tt.err)
			if class != tt.class || delay != tt.delay {
				t.Errorf("Classify(%v) = %v, %v; want %v, %v", tt.err, class, delay, tt.class, tt.delay)
			}
			if got := (effect.Outcome{Err: tt.err}).Class(); got != tt.class {
				t.Errorf("Outcome.Class() = %v, want %v", got, tt.class)
			}
		})
	}
}

func TestClassifiedErrorsKeepTheirCause(t *testing.T) {
	cause := wrapper{errSink}
	for name, err := range map[string]error{
		"Temporary":      effect.Temporary(cause),
		"TemporaryAfter": effect.TemporaryAfter(cause, time.Second),
		"Permanent":      effect.Permanent(cause),
		"Undecodable":    effect.Undecodable(cause),
		"UnknownAfter":   effect.UnknownAfter(cause, time.Second),
	} {
		if !errors.Is(err, errSink) {
			t.Errorf("%s: errors.Is does not reach the cause", name)
		}
		var w wrapper
		if !errors.As(err, &w) {
			t.Errorf("%s: errors.As does not reach the cause", name)
		}
		if !strings.Contains(err.Error(), cause.Error()) {
			t.Errorf("%s: text %q does not show the cause", name, err)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{effect.Temporary(errSink), "temporary: sink said no"},
		{effect.TemporaryAfter(errSink, time.Second), "temporary (again after 1s at the earliest): sink said no"},
		{effect.Permanent(errSink), "permanent: sink said no"},
		{effect.Undecodable(errSink), "undecodable: sink said no"},
		{effect.UnknownAfter(errSink, 0), "unknown: sink said no"},
		{effect.Temporary(nil), "temporary error of the effect, without a cause"},
		{effect.Permanent(nil), "permanent error of the effect, without a cause"},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("text %q, want %q", got, tt.want)
		}
	}
}

func TestReason(t *testing.T) {
	undecodable := effect.Undecodable(errSink)
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"nil", nil, ""},
		{"plain", errSink, ""},
		{"permanent", effect.Permanent(errSink), ""},
		{"undecodable", undecodable, effect.ReasonUndecodable},
		{"wrapped", fmt.Errorf("order 17: %w", undecodable), effect.ReasonUndecodable},
		{"overruled by permanent", effect.Permanent(undecodable), ""},
		{"joined with temporary", errors.Join(effect.Temporary(errSink), undecodable), effect.ReasonUndecodable},
		{"joined with plain", errors.Join(undecodable, errSink), ""},
	}
	for _, tt := range tests {
		if got := effect.Reason(tt.err); got != tt.want {
			t.Errorf("%s: Reason = %q, want %q", tt.name, got, tt.want)
		}
	}
	var r interface{ Reason() string }
	if !errors.As(undecodable, &r) || r.Reason() != "undecodable" {
		t.Errorf("the error itself has no Reason %q", "undecodable")
	}
}

func TestClassString(t *testing.T) {
	for class, want := range map[effect.Class]string{
		effect.ClassUnknown:   "unknown",
		effect.ClassApplied:   "applied",
		effect.ClassTemporary: "temporary",
		effect.ClassPermanent: "permanent",
		effect.Class(99):      "unknown",
	} {
		if got := class.String(); got != want {
			t.Errorf("Class(%d) = %q, want %q", class, got, want)
		}
	}
	var zero effect.Class
	if zero != effect.ClassUnknown {
		t.Error("the zero Class must be unknown")
	}
}

func TestPanicErrorText(t *testing.T) {
	secret := struct{ Card string }{"4111"}
	tests := []struct {
		value any
		want  string
	}{
		{"boom", "effect panicked: boom"},
		{errSink, "effect panicked: sink said no"},
		{secret, "effect panicked: a value of type struct { Card string }"},
		{strings.Repeat("x", 1000), "effect panicked: " + strings.Repeat("x", 256) + "..."},
	}
	for _, tt := range tests {
		err := &effect.PanicError{Where: "effect", Value: tt.value}
		if got := err.Error(); got != tt.want {
			t.Errorf("text %q, want %q", got, tt.want)
		}
	}
	if !errors.Is(&effect.PanicError{Value: errSink}, errSink) {
		t.Error("errors.Is does not reach an error that was panicked with")
	}
	if err := errors.Unwrap(&effect.PanicError{Value: "boom"}); err != nil {
		t.Errorf("a string unwraps to %v, want nil", err)
	}
}

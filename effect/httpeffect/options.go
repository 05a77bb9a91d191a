package httpeffect

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"
)

// Defaults of Options.
const (
	DefaultTimeout          = 30 * time.Second
	DefaultMaxResponseBytes = 1 << 20
	DefaultMaxRetryAfter    = 15 * time.Minute
	DefaultKeyHeader        = "Idempotency-Key"
)

// Options are the options of New; nil is the same as the zero value.
type Options struct {
	// Transport sends the requests. nil: NewTransport(nil). What another one
	// costs is in the package's documentation.
	Transport http.RoundTripper
	// Timeout ends one request, its answer included. 0: DefaultTimeout (30
	// s). Negative: none, only the context of the effect ends it.
	Timeout time.Duration
	// MaxResponseBytes is how much of an answer's body is read and kept. The
	// rest is cut and Response.Truncated set. 0: DefaultMaxResponseBytes (1
	// MiB). Negative is refused.
	MaxResponseBytes int
	// KeyHeader is the header that carries the effect id. "":
	// DefaultKeyHeader (Idempotency-Key).
	KeyHeader string
	// NoKeyHeader leaves the effect id out of the headers, for a sink that
	// takes it in the body or not at all.
	NoKeyHeader bool
	// MaxRetryAfter bounds what a Retry-After header can ask for; a longer
	// wait is cut to it. 0: DefaultMaxRetryAfter (15 minutes). Negative: the
	// header is ignored.
	MaxRetryAfter time.Duration
	// Status says what single statuses (200 to 599) of this sink mean, where
	// that differs from the table in the package's documentation. It is a
	// promise of the sink's: 503 declared RefusedForNow while it may have
	// worked makes the effect happen twice.
	Status map[int]Meaning
}

func (o *Options) check() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	var errs []error
	if out.Transport == nil {
		out.Transport = NewTransport(nil)
	}
	if out.Timeout == 0 {
		out.Timeout = DefaultTimeout
	}
	if out.MaxResponseBytes < 0 {
		errs = append(errs, fmt.Errorf("MaxResponseBytes is %d: give a positive number, or leave it 0 for %d", out.MaxResponseBytes, DefaultMaxResponseBytes))
	}
	if out.MaxResponseBytes == 0 {
		out.MaxResponseBytes = DefaultMaxResponseBytes
	}
	out.MaxResponseBytes = min(out.MaxResponseBytes, math.MaxInt-1) // read tells by one byte more
	if out.KeyHeader != "" && out.NoKeyHeader {
		errs = append(errs, fmt.Errorf("KeyHeader is %q and NoKeyHeader is set: give only one of them", out.KeyHeader))
	}
	if out.KeyHeader == "" {
		out.KeyHeader = DefaultKeyHeader
	}
	if !isToken(out.KeyHeader) {
		errs = append(errs, fmt.Errorf("KeyHeader %q is not a header name: use letters, digits and hyphens", out.KeyHeader))
	}
	if out.MaxRetryAfter == 0 {
		out.MaxRetryAfter = DefaultMaxRetryAfter
	}
	status := make(map[int]Meaning, len(out.Status))
	for code, meaning := range out.Status {
		if code < 200 || code > 599 {
			errs = append(errs, fmt.Errorf("a meaning is given for status %d: only 200 to 599 can be given one", code))
		}
		if meaning > RefusedForGood {
			errs = append(errs, fmt.Errorf("status %d has the unknown meaning %d: use Unknown, Applied, RefusedForNow or RefusedForGood", code, meaning))
		}
		status[code] = meaning
	}
	out.Status = status
	if err := errors.Join(errs...); err != nil {
		return Options{}, fmt.Errorf("httpeffect: wrong options: %w", err)
	}
	return out, nil
}

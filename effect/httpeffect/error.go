package httpeffect

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Error is what a request that was not applied, or perhaps not, ended with. It
// is inside the classified error that Do returns: errors.As reaches it.
type Error struct {
	// Method and URL say what was asked for; URL without user, password,
	// query and fragment.
	Method string
	URL    string
	// Status is the status of the answer, 0 if there was none.
	Status int
	// MayBeWritten is false only if no byte of the request has left.
	MayBeWritten bool
	// Err is the cause, nil where the status is all that is to say.
	Err error
}

// Error says what was asked, what came back and whether the request can have
// reached the sink. It shows nothing of the bodies.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Method + " " + e.URL)
	if e.Status != 0 {
		fmt.Fprintf(&b, ": status %d", e.Status)
		if text := http.StatusText(e.Status); text != "" {
			b.WriteString(" " + text)
		}
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	switch {
	case e.Status != 0:
	case e.MayBeWritten:
		b.WriteString(" (the request may have reached the sink)")
	default:
		b.WriteString(" (the request never left)")
	}
	return b.String()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// bare is the URL as it may be logged.
func bare(u *url.URL) string {
	if u == nil {
		return "?"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

package httpeffect

import "net/http"

// Meaning is what a status says about the effect. The zero Meaning is Unknown.
type Meaning uint8

const (
	// Unknown: the sink may or may not have worked.
	Unknown Meaning = iota
	// Applied: the sink has done it.
	Applied
	// RefusedForNow: the sink has done nothing and may do it later. The error
	// is effect.Temporary.
	RefusedForNow
	// RefusedForGood: the sink has done nothing and never will. The error is
	// effect.Permanent.
	RefusedForGood
)

// String returns the name of the constant.
func (m Meaning) String() string {
	switch m {
	case Applied:
		return "Applied"
	case RefusedForNow:
		return "RefusedForNow"
	case RefusedForGood:
		return "RefusedForGood"
	case Unknown:
	}
	return "Unknown"
}

// MeaningOf returns what a status means unless Options.Status says otherwise:
// 2xx Applied, 429 RefusedForNow, other 4xx but 408 RefusedForGood, everything
// else Unknown.
func MeaningOf(status int) Meaning {
	switch {
	case status >= 200 && status <= 299:
		return Applied
	case status == http.StatusTooManyRequests:
		return RefusedForNow
	case status == http.StatusRequestTimeout:
		return Unknown
	case status >= 400 && status <= 499:
		return RefusedForGood
	default:
		return Unknown
	}
}

package httpeffect

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter returns how long the answer asks to be left alone, between 0 and
// limit: Retry-After in seconds or as an HTTP date. A date is taken relative to
// the answer's own Date, so that the sink's clock need not be ours. 0 if there
// is none that can be read.
func retryAfter(h http.Header, now time.Time, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if digits(value) {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(limit/time.Second) {
			return limit // too large to be parsed is too large to be waited for
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), limit)
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

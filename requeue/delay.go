package requeue

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// FormatDelay writes a delay as topic names and headers do: whole seconds as
// "90s", everything else in milliseconds as "500ms". A fraction of a
// millisecond counts as a whole one; nothing and less than nothing is "0s".
func FormatDelay(d time.Duration) string {
	d = wholeMillis(d)
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return strconv.FormatInt(int64(d/time.Millisecond), 10) + "ms"
}

// ParseDelay reads what [FormatDelay] writes and nothing else: "1000ms", "01s",
// "+1s" and "1m" are errors.
func ParseDelay(s string) (time.Duration, error) {
	digits, unit := strings.TrimSuffix(s, "s"), time.Second
	if rest, milli := strings.CutSuffix(s, "ms"); milli {
		digits, unit = rest, time.Millisecond
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(unit) || FormatDelay(time.Duration(n)*unit) != s {
		return 0, fmt.Errorf("%s is not a delay: want whole seconds as 90s or milliseconds as 500ms", quote(s))
	}
	return time.Duration(n) * unit, nil
}

// wholeMillis rounds up to milliseconds, and to zero from below it.
func wholeMillis(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	if rest := d % time.Millisecond; rest != 0 {
		if d > math.MaxInt64-time.Millisecond {
			return d - rest
		}
		return d - rest + time.Millisecond
	}
	return d
}

// quote quotes the beginning of a text for an error message.
func quote(s string) string {
	if len(s) > 64 {
		return strconv.QuoteToASCII(s[:64]) + "..."
	}
	return strconv.QuoteToASCII(s)
}

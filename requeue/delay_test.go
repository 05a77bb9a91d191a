package requeue

import (
	"math"
	"testing"
	"time"
)

func TestFormatDelay(t *testing.T) {
	for d, want := range map[time.Duration]string{
		500 * time.Millisecond:            "500ms",
		time.Second:                       "1s",
		90 * time.Second:                  "90s",
		1500 * time.Millisecond:           "1500ms",
		time.Hour:                         "3600s",
		0:                                 "0s",
		-time.Second:                      "0s",
		1:                                 "1ms",
		time.Second + 1:                   "1001ms",
		time.Duration(math.MaxInt64):      "9223372036854ms",
		time.Duration(math.MaxInt64) - 10: "9223372036854ms",
	} {
		if got := FormatDelay(d); got != want {
			t.Errorf("FormatDelay(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestParseDelayTakesNothingButFormatDelay(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, 500 * time.Millisecond, time.Second, 90 * time.Second, MaxDelay} {
		if got, err := ParseDelay(FormatDelay(d)); err != nil || got != d {
			t.Errorf("ParseDelay(FormatDelay(%v)) = %v, %v", d, got, err)
		}
	}
	for _, bad := range []string{"", "s", "ms", "1", "1m", "1h", "1000ms", "60000ms", "01s", "+1s", "-1s", "1.5s", " 1s", "1s ", "1S", "0ms", "9223372037s", "99999999999999999999s"} {
		if got, err := ParseDelay(bad); err == nil {
			t.Errorf("ParseDelay(%q) = %v, want an error", bad, got)
		}
	}
}

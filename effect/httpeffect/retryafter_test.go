package httpeffect

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	const limit = 10 * time.Minute
	tests := []struct {
		name, value, date string
		limit             time.Duration
		want              time.Duration
	}{
		{"none", "", "", limit, 0},
		{"seconds", "30", "", limit, 30 * time.Second},
		{"white space", " 30 ", "", limit, 30 * time.Second},
		{"zero", "0", "", limit, 0},
		{"at the bound", "600", "", limit, limit},
		{"over the bound", "601", "", limit, limit},
		{"a day", "86400", "", limit, limit},
		{"too large for int64", "99999999999999999999", "", limit, limit},
		{"largest int64", strconv.FormatInt(math.MaxInt64, 10), "", math.MaxInt64, math.MaxInt64},
		{"negative", "-5", "", limit, 0},
		{"fraction", "1.5", "", limit, 0},
		{"words", "soon", "", limit, 0},
		{"date", at(time.Minute), "", limit, time.Minute},
		{"date in the past", at(-time.Minute), "", limit, 0},
		{"date far off", at(24 * time.Hour), "", limit, limit},
		{"date by the clock of the sink", at(time.Hour + 20*time.Second), at(time.Hour), limit, 20 * time.Second},
		{"date with a broken Date", at(time.Minute), "yesterday", limit, time.Minute},
		{"date in the old format", now.Add(time.Minute).Format("Monday, 02-Jan-06 15:04:05 GMT"), "", limit, time.Minute},
		{"ignored", "30", "", -1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			if tt.value != "" {
				h.Set("Retry-After", tt.value)
			}
			if tt.date != "" {
				h.Set("Date", tt.date)
			}
			if got := retryAfter(h, now, tt.limit); got != tt.want {
				t.Errorf("retryAfter(%q) = %v, want %v", tt.value, got, tt.want)
			}
		})
	}
}

func TestRetryAfterReachesTheError(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Path[1:])
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(code)
	}))
	t.Cleanup(s.Close)
	tests := []struct {
		status int
		max    time.Duration
		class  effect.Class
		delay  time.Duration
	}{
		{429, 0, effect.ClassTemporary, 2 * time.Minute},
		{503, 0, effect.ClassUnknown, 2 * time.Minute},
		{429, time.Minute, effect.ClassTemporary, time.Minute},
		{429, -1, effect.ClassTemporary, 0},
		{400, 0, effect.ClassPermanent, 0},
		{200, 0, effect.ClassApplied, 0},
	}
	for _, tt := range tests {
		c, err := New(&Options{MaxRetryAfter: tt.max})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Do(t.Context(), effect.Input{EffectID: "e"}, Request{URL: s.URL + "/" + strconv.Itoa(tt.status)})
		if class, delay := effect.Classify(err); class != tt.class || delay != tt.delay {
			t.Errorf("status %d, bound %v: %v %v, want %v %v", tt.status, tt.max, class, delay, tt.class, tt.delay)
		}
		c.CloseIdleConnections()
	}
}

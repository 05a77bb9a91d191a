package requeue

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func fixed(r float64) func() float64 { return func() float64 { return r } }

func TestDefaultScheduleIsOneFiveThirtySeconds(t *testing.T) {
	var s Schedule
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if s.Steps() != 3 || s.Budget() != 36*time.Second {
		t.Errorf("%d steps, budget %v, want 3 and 36s", s.Steps(), s.Budget())
	}
	for step, want := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
		if got := s.Delay(step, 0, fixed(0.5)); got != want {
			t.Errorf("step %d: %v in the middle of the jitter, want %v", step, got, want)
		}
		if got := s.Delay(step, 0, fixed(0)); got != want*9/10 {
			t.Errorf("step %d: least %v, want %v", step, got, want*9/10)
		}
		if got := s.Delay(step, 0, fixed(math.Nextafter(1, 0))); got > want*11/10 || got < want*109/100 {
			t.Errorf("step %d: most %v, want about %v", step, got, want*11/10)
		}
	}
}

func TestDelayOutsideTheSchedule(t *testing.T) {
	var s Schedule
	if got := s.Delay(7, 0, fixed(0.5)); got != 30*time.Second {
		t.Errorf("a step behind the last waits %v, want the last delay", got)
	}
	if got := s.Delay(-1, 0, fixed(0.5)); got != time.Second {
		t.Errorf("a negative step waits %v, want the first delay", got)
	}
	none := Schedule{Delays: []time.Duration{}}
	if none.Steps() != 0 || none.Budget() != 0 {
		t.Errorf("an empty schedule has %d steps and budget %v", none.Steps(), none.Budget())
	}
	if got := none.Delay(0, 0, nil); got != time.Millisecond {
		t.Errorf("an empty schedule without a given delay waits %v, want 1ms", got)
	}
}

func TestGivenDelay(t *testing.T) {
	var s Schedule
	for _, c := range []struct {
		name        string
		given       time.Duration
		r           float64
		least, most time.Duration
	}{
		{"shorter is ignored", 200 * time.Millisecond, 0.5, time.Second, time.Second},
		{"negative is ignored", -time.Hour, 0.5, time.Second, time.Second},
		{"longer is never shortened", 3 * time.Second, 0, 3 * time.Second, 3 * time.Second},
		{"longer is spread upwards", 3 * time.Second, 0.999, 3200 * time.Millisecond, 3300 * time.Millisecond},
		{"a year is cut", 365 * 24 * time.Hour, 0.999, MaxDelay, MaxDelay},
		{"the end of time is cut", math.MaxInt64, 0.999, MaxDelay, MaxDelay},
	} {
		if got := s.Delay(0, c.given, fixed(c.r)); got < c.least || got > c.most {
			t.Errorf("%s: %v, want %v to %v", c.name, got, c.least, c.most)
		}
	}
}

func TestDelaysAreWholeMillisecondsInsideTheJitter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		d := time.Duration(1+rng.Int64N(int64(MaxDelay/time.Millisecond))) * time.Millisecond
		s := Schedule{Delays: []time.Duration{d}, Jitter: rng.Float64() / 2}
		got := s.Delay(0, 0, rng.Float64)
		if got%time.Millisecond != 0 || got < s.shortest(d) || got > s.longest(d) {
			t.Fatalf("delay %v, jitter %v: %v, want whole milliseconds in [%v, %v]", d, s.Jitter, got, s.shortest(d), s.longest(d))
		}
	}
	off := Schedule{Delays: []time.Duration{time.Second}, Jitter: -1}
	if got := off.Delay(0, 0, fixed(0)); got != time.Second {
		t.Errorf("without jitter: %v, want 1s", got)
	}
	if got := (Schedule{}).Delay(0, 0, nil); got < 900*time.Millisecond || got > 1100*time.Millisecond {
		t.Errorf("with the package's own random numbers: %v, want 1s within a tenth", got)
	}
}

func TestScheduleIsChecked(t *testing.T) {
	second := []time.Duration{time.Second}
	for _, c := range []struct {
		name string
		s    Schedule
		want string // in the error; empty: none
	}{
		{"no retries", Schedule{Delays: []time.Duration{}}, ""},
		{"equal delays", Schedule{Delays: slices.Repeat(second, MaxDelays)}, ""},
		{"too many", Schedule{Delays: slices.Repeat(second, MaxDelays+1)}, "21 delays"},
		{"zero", Schedule{Delays: []time.Duration{0}}, "delay 1: 0s: use 1ms or more"},
		{"negative", Schedule{Delays: []time.Duration{time.Second, -1}}, "delay 2"},
		{"finer than names can say", Schedule{Delays: []time.Duration{1500 * time.Microsecond}}, "whole milliseconds"},
		{"too long", Schedule{Delays: []time.Duration{MaxDelay + time.Millisecond}}, "use 24h0m0s or less"},
		{"turns around", Schedule{Delays: []time.Duration{5 * time.Second, time.Second}}, "shorter than the one before"},
		{"most jitter", Schedule{Jitter: 0.5}, ""},
		{"too much jitter", Schedule{Jitter: 0.51}, "jitter 0.51"},
		{"no number", Schedule{Jitter: math.NaN()}, "jitter NaN"},
		{"no jitter", Schedule{Jitter: -1}, ""},
		{"retired", Schedule{Retired: []time.Duration{time.Minute, time.Second}}, ""},
		{"retired zero", Schedule{Retired: []time.Duration{0}}, "retired delay 1"},
	} {
		err := c.s.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

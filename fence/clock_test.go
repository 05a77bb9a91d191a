package fence

import (
	"testing"
	"time"
	"unsafe"
)

// UseClock makes a fence, before Open, read its time from now.
func UseClock(f *Fence, now func() time.Time) { f.now = now }

// Renewing is the number of holds that a space renews.
func Renewing(s *Space) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.holds)
}

// TwoClocks makes a time whose wall and monotonic readings move apart, as those
// of time.Now do when the machine sleeps or its clock is set. There is no other
// way to make one; TestTwoClocks notices when package time changes.
func TwoClocks(wall time.Time, monotonic time.Duration) time.Time {
	const (
		hasMonotonic = 1 << 63
		since1885    = 2682288000 // seconds from 1885 to 1970
		nsecShift    = 30
	)
	t := wall.Round(0)
	raw := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	raw.wall = hasMonotonic | uint64(wall.Unix()+since1885)<<nsecShift | uint64(wall.Nanosecond())
	raw.ext = int64(monotonic)
	return t
}

func TestTwoClocks(t *testing.T) {
	wall := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	a, b := TwoClocks(wall, time.Minute), TwoClocks(wall.Add(time.Hour), time.Minute+time.Second)
	if !a.Round(0).Equal(wall) || b.Sub(a) != time.Second || b.Round(0).Sub(a.Round(0)) != time.Hour {
		t.Fatalf("a is %v, want %v; b-a is %v on the monotonic clock, want 1s, and %v on the wall clock, want 1h", a, wall, b.Sub(a), b.Round(0).Sub(a.Round(0)))
	}
}

func TestPassedGoesByTheClockThatWentFurther(t *testing.T) {
	start := TwoClocks(time.Unix(1_000_000, 0), time.Hour)
	for _, tt := range []struct {
		name            string
		wall, monotonic time.Duration
		want            time.Duration
	}{
		{"together", 5 * time.Second, 5 * time.Second, 5 * time.Second},
		{"wall clock set back", -time.Hour, 5 * time.Second, 5 * time.Second},
		{"wall clock set ahead", time.Hour, 5 * time.Second, time.Hour},
		{"machine slept", 30 * time.Second, 10 * time.Millisecond, 30 * time.Second},
	} {
		now := TwoClocks(start.Add(tt.wall), time.Hour+tt.monotonic)
		if got := passed(start, now); got != tt.want {
			t.Errorf("%s: passed = %v, want %v", tt.name, got, tt.want)
		}
	}
}

// clockTest moves a local and a store's clock.
type clockTest struct {
	clock clock
	local time.Time
	ahead time.Duration // of the store
}

const testLease = 10 * time.Second

// pass lets local time go by.
func (c *clockTest) pass(d time.Duration) { c.local = c.local.Add(d) }

// ask observes an answer that travelled for there and back.
func (c *clockTest) ask(there, back time.Duration) (jump time.Duration) {
	sent := c.local
	c.pass(there)
	now := c.local.Add(c.ahead).UnixMicro()
	c.pass(back)
	return c.clock.observe(now, sent, c.local, testLease, margin(testLease))
}

// errors are by how much the estimate, and what takeovers trust, are ahead of
// the store's clock.
func (c *clockTest) errors() (estimate, trusted time.Duration) {
	e, f := c.clock.estimate(c.local)
	truth := c.local.Add(c.ahead).UnixMicro()
	return time.Duration(e-truth) * time.Microsecond, time.Duration(f-truth) * time.Microsecond
}

func newClockTest() *clockTest {
	return &clockTest{local: time.Unix(1_000_000, 0), ahead: 3 * time.Hour}
}

func (c *clockTest) want(t *testing.T, when string, estimate, trusted time.Duration) {
	t.Helper()
	const slack = 5 * time.Microsecond
	e, f := c.errors()
	if (e-estimate).Abs() > slack || (f-trusted).Abs() > slack {
		t.Errorf("%s: the estimate is %v and what takeovers trust is %v ahead of the store, want %v and %v", when, e, f, estimate, trusted)
	}
}

func TestClockIsUnknownBeforeTheFirstAnswer(t *testing.T) {
	var c clock
	if e, f := c.estimate(time.Unix(5, 0)); e != 0 || f != 0 {
		t.Errorf("estimate = %d, %d, want zeros", e, f)
	}
	if jump := c.observe(0, time.Unix(5, 0), time.Unix(5, 0), testLease, margin(testLease)); jump != 0 || c.known {
		t.Errorf("an answer without a clock was taken for one")
	}
}

func TestClockTakesTheFastestAnswer(t *testing.T) {
	c := newClockTest()
	c.ask(0, 400*time.Millisecond)
	c.want(t, "after a slow answer", -400*time.Millisecond, -400*time.Millisecond)
	c.pass(time.Second)
	c.ask(0, 20*time.Millisecond)
	c.want(t, "after a fast one", -20*time.Millisecond, -400*time.Millisecond)
	for range 3 {
		c.pass(testLease)
		c.ask(time.Second, 500*time.Millisecond)
	}
	c.want(t, "slow answers later", -20*time.Millisecond, -20*time.Millisecond)
}

func TestClockFollowsDrift(t *testing.T) {
	for _, drift := range []time.Duration{time.Millisecond, -time.Millisecond} { // per second, ten times what clocks do
		c := newClockTest()
		for range 600 {
			if jump := c.ask(time.Millisecond, time.Millisecond); jump != 0 {
				t.Fatalf("drift of %v a second was taken for a jump of %v", drift, jump)
			}
			c.pass(time.Second)
			c.ahead += drift
		}
		if e, f := c.errors(); e.Abs() > 5*time.Millisecond || f.Abs() > 25*time.Millisecond {
			t.Errorf("drift of %v a second: the estimate is off by %v, what takeovers trust by %v", drift, e, f)
		}
	}
}

func TestClockJumpForwardIsNotTrustedForOneLease(t *testing.T) {
	c := newClockTest()
	c.ask(0, 0)
	c.pass(testLease)
	c.ask(0, 0)
	c.pass(testLease / 2)
	c.ahead += time.Minute
	if jump := c.ask(0, 0); jump != time.Minute {
		t.Errorf("jump reported = %v, want 1m", jump)
	}
	c.want(t, "after the jump", 0, -time.Minute)
	c.pass(testLease - time.Second)
	c.ask(0, 0)
	c.want(t, "almost a lease later", 0, -time.Minute)
	c.pass(time.Second)
	c.want(t, "a lease later", 0, 0)
}

func TestClockSmallJumpsAddUp(t *testing.T) {
	c := newClockTest()
	c.ask(0, 0)
	c.pass(testLease)
	c.ask(0, 0)
	step := margin(testLease) - time.Millisecond
	var reported time.Duration
	for range 3 {
		c.pass(time.Second)
		c.ahead += step
		reported += c.ask(0, 0)
	}
	c.want(t, "after three jumps below the margin", 0, -3*step)
	if reported == 0 {
		t.Error("jumps that add up to more than the margin within a lease were not reported")
	}
}

func TestClockSlowAnswerHidesNoJump(t *testing.T) {
	c := newClockTest()
	c.ask(0, 0)
	c.pass(testLease)
	c.ask(0, 0)
	c.ahead += 3 * time.Second     // more than the margin of 2.5 s
	c.ask(0, 600*time.Millisecond) // but the answer shows only 2.4 s
	c.want(t, "after the jump", -600*time.Millisecond, -3*time.Second)
}

func TestClockJumpBackIsTrustedAtOnce(t *testing.T) {
	c := newClockTest()
	c.ask(time.Millisecond, time.Millisecond)
	c.ahead -= time.Minute
	if jump := c.ask(time.Millisecond, time.Millisecond); jump > -59*time.Second {
		t.Errorf("jump reported = %v, want about -1m", jump)
	}
	c.want(t, "after the jump", -time.Millisecond, -time.Millisecond)
	// Set right again within the lease: nobody may take over by that.
	c.pass(time.Second)
	c.ahead += time.Minute
	c.ask(time.Millisecond, time.Millisecond)
	c.want(t, "after it was set right", -time.Millisecond, -time.Minute-time.Millisecond)
}

func TestClockWarnsOncePerLease(t *testing.T) {
	c := newClockTest()
	c.ask(0, 0)
	warnings := 0
	for i := range 20 { // two nodes whose clocks differ answer in turn
		c.ahead += time.Minute * time.Duration(1-i%2*2)
		if c.ask(0, 0) != 0 {
			warnings++
		}
		c.pass(time.Second)
	}
	if warnings != 2 {
		t.Errorf("%d warnings in 20 s with a lease of 10 s, want 2", warnings)
	}
}

func TestEarlierStoreTimeOfABatch(t *testing.T) {
	for _, tt := range [][3]int64{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 3, 3}, {3, 5, 3}} {
		if got := earlier(tt[0], tt[1]); got != tt[2] {
			t.Errorf("earlier(%d, %d) = %d, want %d", tt[0], tt[1], got, tt[2])
		}
	}
}

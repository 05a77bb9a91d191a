package requeue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

var fiveSeconds = Place{Topic: "t.g.retry.5s", Source: "t", Kind: RetryTopic, Delay: 5 * time.Second, Longest: 5500 * time.Millisecond}

func TestDue(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name     string
		place    Place
		delay    time.Duration
		stamp    time.Time
		appended bool
		offset   time.Duration
		want     time.Duration // after now
	}{
		{"just appended", fiveSeconds, 5 * time.Second, now, true, 0, 5 * time.Second},
		{"appended a while ago", fiveSeconds, 5 * time.Second, now.Add(-3 * time.Second), true, 0, 2 * time.Second},
		{"over due", fiveSeconds, 5 * time.Second, now.Add(-time.Hour), true, 0, 0},
		{"jitter upwards", fiveSeconds, 5400 * time.Millisecond, now, true, 0, 5400 * time.Millisecond},
		{"jitter downwards", fiveSeconds, 4600 * time.Millisecond, now, true, 0, 4600 * time.Millisecond},
		{"longer than the topic", fiveSeconds, time.Hour, now, true, 0, 5500 * time.Millisecond},
		{"no delay", fiveSeconds, 0, now, true, 0, 0},
		{"local clock ahead", fiveSeconds, 5 * time.Second, now.Add(-time.Minute), true, time.Minute, 5 * time.Second},
		{"local clock behind", fiveSeconds, 5 * time.Second, now.Add(time.Minute), true, -time.Minute, 5 * time.Second},
		{"local clock ahead and not learned", fiveSeconds, 5 * time.Second, now.Add(time.Minute), true, 0, 5 * time.Second},
		{"no append time", fiveSeconds, 5 * time.Second, now.Add(-time.Hour), false, 0, 5 * time.Second},
		{"no append time, producer's clock ahead", fiveSeconds, 5 * time.Second, now.Add(time.Hour), false, 0, 5 * time.Second},
		{"no append time, longer than the topic", fiveSeconds, time.Hour, now, false, 0, 5500 * time.Millisecond},
		{"place without the most jitter", Place{Kind: RetryTopic, Delay: time.Second}, time.Minute, now, true, 0, time.Second},
		{"source topic", Place{Kind: SourceTopic}, time.Minute, now, true, 0, 0},
		{"dead letters", Place{Kind: DeadLetterTopic}, time.Minute, now, true, 0, 0},
	} {
		rec := driver.Record{Timestamp: c.stamp, AppendTime: c.appended}
		if got := Due(c.place, rec, Copy{Delay: c.delay}, now, c.offset).Sub(now); got != c.want {
			t.Errorf("%s: due after %v, want %v", c.name, got, c.want)
		}
	}
}

func TestHop(t *testing.T) {
	for _, c := range []struct {
		name  string
		place Place
		delay time.Duration
		left  time.Duration
	}{
		{"fits", fiveSeconds, 5 * time.Second, 0},
		{"fits with jitter", fiveSeconds, 5500 * time.Millisecond, 0},
		{"longer", fiveSeconds, time.Minute, 54500 * time.Millisecond},
		{"source topic", Place{Kind: SourceTopic}, time.Minute, 0},
	} {
		left, hop := Hop(c.place, Copy{Delay: c.delay})
		if left != c.left || hop != (c.left > 0) {
			t.Errorf("%s: %v, %v, want %v", c.name, left, hop, c.left)
		}
	}
}

func timeOf(ms int64) time.Time { return time.UnixMilli(ms) }

// stamped is a record that the broker of a partition appended at a time of its
// own clock, which is ahead of the local one.
func stamped(partition int32, ahead, age time.Duration) driver.Record {
	return driver.Record{Topic: "t", Partition: partition, Timestamp: time.Now().Round(0).Add(ahead - age), AppendTime: true}
}

func TestAppendClockLearnsTheSmallestDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock AppendClock
		check := func(name string, rec driver.Record, want time.Duration) {
			t.Helper()
			if got := clock.Offset(rec, time.Now()); got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		check("a first record from a backlog says little", stamped(0, time.Minute, time.Hour), time.Hour-time.Minute)
		check("a fresh one says more", stamped(0, time.Minute, 20*time.Millisecond), 20*time.Millisecond-time.Minute)
		check("an older one does not take it back", stamped(0, time.Minute, time.Hour), 20*time.Millisecond-time.Minute)
		check("another partition has its own clock", stamped(1, -time.Minute, time.Millisecond), time.Minute+time.Millisecond)
		check("without append time nothing is known", driver.Record{Topic: "t", Timestamp: time.Now()}, 0)

		led := stamped(0, 0, time.Second)
		led.LeaderEpoch = 1
		check("a new leader has a clock of its own", led, time.Second)

		clock.Forget("t", 1)
		check("forgotten", stamped(1, 0, time.Second), time.Second)
	})
}

func TestAppendClockFollowsAClockThatIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock AppendClock
		clock.Offset(stamped(0, time.Minute, 0), time.Now())
		// The broker's clock is set back by a minute. For a while records may be
		// early by that, then the old sight is gone.
		for range 100 {
			<-time.After(6 * time.Second)
			clock.Offset(stamped(0, 0, 0), time.Now())
		}
		if got := clock.Offset(stamped(0, 0, 0), time.Now()); got != 0 {
			t.Errorf("ten minutes later: %v, want 0", got)
		}
		<-time.After(time.Hour)
		if got := clock.Offset(stamped(0, 0, time.Second), time.Now()); got != time.Second {
			t.Errorf("after an hour without records: %v, want only what is fresh", got)
		}
	})
}

// Whatever the clocks say, a record is due between its receipt and its delay
// after that, and not before its delay has passed for the broker.
func TestNeverEarlyNeverLongerThanItsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ahead := range []time.Duration{-time.Hour, -time.Second, 0, time.Second, time.Hour} {
			var clock AppendClock
			for i := range 200 {
				<-time.After(10 * time.Millisecond)
				age := time.Duration(i*37%900) * 10 * time.Millisecond // how long ago it was really appended
				rec, now := stamped(0, ahead, age), time.Now()
				due := Due(fiveSeconds, rec, Copy{Delay: 5 * time.Second}, now, clock.Offset(rec, now))
				if early := now.Add(-age).Add(5 * time.Second); due.Before(early) || due.Before(now) {
					t.Fatalf("broker %v ahead, record %v old: early by %v", ahead, age, early.Sub(due))
				}
				if due.After(now.Add(5 * time.Second)) {
					t.Fatalf("broker %v ahead, record %v old: waits %v from receipt", ahead, age, due.Sub(now))
				}
			}
		}
	})
}

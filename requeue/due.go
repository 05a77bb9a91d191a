package requeue

import (
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Due returns when a copy that was read at place may go on. now is the time of
// its receipt; offset is the local clock minus the broker's, from
// [AppendClock.Offset].
//
// With the broker's append time it is append time + offset + wait, where wait is
// the copy's delay, at most what place makes a record wait (Place.Longest). It
// is never earlier than now and never later than now + wait, whatever the clocks
// say. Without append time it is now + wait: the producer's clock is not
// believed, so a copy that is delivered twice waits twice.
//
// At a place that is no retry topic it is now. The answer has the monotonic
// clock reading of now, so a step of the wall clock while waiting does no harm.
func Due(place Place, rec driver.Record, c Copy, now time.Time, offset time.Duration) time.Time {
	wait := place.wait(c.Delay)
	if !rec.AppendTime {
		return now.Add(wait)
	}
	left := rec.Timestamp.Add(offset).Add(wait).Sub(now.Round(0))
	return now.Add(max(0, min(left, wait)))
}

// Hop says whether a copy has to wait longer than place makes it wait, and how
// much longer. If so, once it is due it moves, as a copy with the same attempt
// and step and the remaining delay, to the topic that [Topics.RetryTopic] names
// for that.
func Hop(place Place, c Copy) (remaining time.Duration, hop bool) {
	if place.Kind != RetryTopic {
		return 0, false
	}
	remaining = c.Delay - place.wait(c.Delay)
	return remaining, remaining > 0
}

package requeue

import (
	"sync"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

// clockWindow is how long an observation counts at least. Clocks drift and are
// set, and partitions change their leader: an old observation may say too little.
const clockWindow = 5 * time.Minute

// AppendClock learns by how much the local clock is ahead of the clocks that
// give append times. A record is received after it was appended, so the local
// time of receipt minus the append time is never less than that; the smallest
// such difference of the last five to ten minutes is the answer. It may be too
// large (nothing fresh has come yet), which makes records wait longer, at most
// their delay from receipt; not too small, so none is early, unless a clock is
// set or the leader changes meanwhile.
//
// Every partition is learned by itself, since each leader has its own clock.
// The zero AppendClock is ready to use. Its methods may be called from any
// goroutine.
type AppendClock struct {
	mu         sync.Mutex
	partitions map[driver.TopicPartition]*clockSight
}

// clockSight is the smallest difference of the current window and of the one
// before.
type clockSight struct {
	since        time.Time
	epoch        int32
	low, lastLow time.Duration
}

// Offset learns from a record that was received at received and returns the
// local clock minus the broker's for its partition. Without append time there
// is nothing to learn, and it returns 0.
func (c *AppendClock) Offset(rec driver.Record, received time.Time) time.Duration {
	if !rec.AppendTime {
		return 0
	}
	seen := received.Round(0).Sub(rec.Timestamp)
	tp := driver.TopicPartition{Topic: rec.Topic, Partition: rec.Partition}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.partitions[tp]
	switch {
	case s == nil || s.epoch != rec.LeaderEpoch || received.Sub(s.since) >= 2*clockWindow:
		if c.partitions == nil {
			c.partitions = map[driver.TopicPartition]*clockSight{}
		}
		s = &clockSight{since: received, epoch: rec.LeaderEpoch, low: seen, lastLow: seen}
		c.partitions[tp] = s
	case received.Sub(s.since) >= clockWindow:
		s.since, s.lastLow, s.low = received, s.low, seen
	}
	s.low = min(s.low, seen)
	return min(s.low, s.lastLow)
}

// Forget drops what was learned of a partition, which is worth doing when it is
// assigned elsewhere.
func (c *AppendClock) Forget(topic string, partition int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.partitions, driver.TopicPartition{Topic: topic, Partition: partition})
}

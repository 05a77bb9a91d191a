package requeue

import (
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

const (
	// unknownRedelivery stands for a retention that is not known or has no end.
	unknownRedelivery = 7 * 24 * time.Hour
	// retryMargin is what a retry topic keeps beyond twice the waiting.
	retryMargin = time.Hour
)

// Specs says what the group's own topics must be like. redelivery is the
// longest time for which a record of the source topics can be delivered again
// (driver.Info.Retention): 0 not known, negative without end; both count as
// 7 days here.
//
// Retry topics keep records for redelivery, so a group that is down loses
// copies no sooner than originals, and at least for twice the budget with the
// most jitter (or twice the longest delay) and an hour. They carry the broker's
// append time. Dead letters are kept twice as long as that.
func (t *Topics) Specs(redelivery time.Duration) []driver.TopicSpec {
	retention := t.retryRetention(redelivery)
	var specs []driver.TopicSpec
	for _, source := range t.sources {
		own := t.own[source]
		for _, p := range own.retry {
			specs = append(specs, driver.TopicSpec{Topic: p.Topic, Like: source, Retention: retention, AppendTime: true})
		}
		for _, p := range own.retired {
			specs = append(specs, driver.TopicSpec{Topic: p.Topic, Like: source, Retention: retention, AppendTime: true})
		}
		specs = append(specs, driver.TopicSpec{Topic: own.dead, Like: source, Retention: 2 * retention})
	}
	return specs
}

func (t *Topics) retryRetention(redelivery time.Duration) time.Duration {
	if redelivery <= 0 {
		redelivery = unknownRedelivery
	}
	budget := t.schedule.longest(t.schedule.Budget())
	for _, d := range t.schedule.Retired {
		budget = max(budget, t.schedule.longest(d))
	}
	return max(redelivery, 2*budget+retryMargin)
}

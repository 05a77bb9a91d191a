package consumer_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
)

// TestConfiguredResetIsCounted: records that retention removed before they were
// read are never jumped over in silence.
func TestConfiguredResetIsCounted(t *testing.T) {
	for _, configured := range []bool{true, false} {
		t.Run(fmt.Sprint("configured ", configured), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 1)
				for i := range 10 {
					b.produce(fmt.Sprint("id-", i), "k", fmt.Sprint("order ", i))
				}
				tp := driver.TopicPartition{Topic: topic}
				b.broker.SetCommitted(group, driver.Offset{TopicPartition: tp, Offset: 2, LeaderEpoch: -1})
				if err := b.broker.Trim(tp, 6); err != nil {
					t.Fatal(err)
				}
				opts := &memsource.SourceOptions{}
				if configured {
					opts.OnReset = memsource.Earliest
				}
				c, stop := b.startWith(b.source(opts), effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
				time.Sleep(5 * time.Second)
				healthy := c.Healthy()
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				b.log.mu.Lock()
				skipped := b.log.gauges.SkippedOffsets
				b.log.mu.Unlock()
				if configured && (skipped != 4 || b.ledger.total() != 4 || healthy != nil) {
					t.Errorf("skipped %d, booked %d, healthy: %v; want 4, 4, nil", skipped, b.ledger.total(), healthy)
				}
				if !configured && (skipped != 0 || b.ledger.total() != 0 || healthy == nil) {
					t.Errorf("skipped %d, booked %d, healthy: %v; want 0, 0 and an error", skipped, b.ledger.total(), healthy)
				}
			})
		})
	}
}

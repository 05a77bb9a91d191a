package memsource_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/consumer/consumertest"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
)

func TestContract(t *testing.T) {
	var broker *memsource.Broker
	var topics atomic.Int64
	consumertest.Test(t, consumertest.Harness{
		Topic: func(_ context.Context, partitions int) (string, error) {
			name := fmt.Sprintf("topic-%d", topics.Add(1))
			return name, broker.CreateTopic(name, &memsource.TopicOptions{Partitions: partitions})
		},
		Open: func(_ context.Context, group string, names []string) (driver.Source, error) {
			return broker.Source(group, names, nil), nil
		},
		Produce: func(_ context.Context, records []driver.Record) error {
			for _, r := range records {
				if _, err := broker.ProduceTo(tp(r.Topic, r.Partition), r); err != nil {
					return err
				}
			}
			return nil
		},
		Committed: func(_ context.Context, group string, tp driver.TopicPartition) (int64, string, error) {
			o, ok := broker.Committed(group, tp)
			if !ok {
				return -1, "", nil
			}
			return o.Offset, o.Metadata, nil
		},
		Lose: func(_ context.Context, source driver.Source) error {
			source.(*memsource.Source).Lose()
			return nil
		},
		Session: time.Minute,
		Around: func(t *testing.T, body func(t *testing.T)) {
			synctest.Test(t, func(t *testing.T) {
				broker = memsource.NewBroker(nil)
				body(t)
			})
		},
	})
}

package consumer_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/memfence"
)

// BenchmarkLoop runs the whole loop over the memory source and fence with an
// effect that does nothing: what is left is the loop's own cost.
func BenchmarkLoop(b *testing.B) {
	broker := memsource.NewBroker(nil)
	if err := broker.CreateTopic(topic, &memsource.TopicOptions{Partitions: 4}); err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 200)
	records := make([]driver.Record, b.N)
	for i := range records {
		records[i] = driver.Record{
			Topic: topic, Key: fmt.Append(nil, "customer-", i%1000), Value: value,
			Headers: []driver.Header{{Key: "idempotency-key", Value: fmt.Append(nil, "id-", i)}},
		}
	}
	if _, err := broker.Produce(records...); err != nil {
		b.Fatal(err)
	}
	f, err := fence.New(memfence.NewStore(nil), &fence.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var ran atomic.Int64
	e := effect.Idempotent(func(context.Context, effect.Input) (effect.Receipt, error) {
		if ran.Add(1) == int64(b.N) {
			cancel()
		}
		return effect.Receipt{}, nil
	}, forever())
	c, err := consumer.New(broker.Source(group, []string{topic}, nil), f, e, &consumer.Options{
		Producer: broker.Producer(nil), Logger: slog.New(slog.DiscardHandler), EndlessTopics: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if err := c.Run(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

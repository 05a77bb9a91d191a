package metrics_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/memfence"
	"github.com/oncefence/oncefence/metrics"
)

// One observer goes into the fence and the consumer. A program serves the
// registry with promhttp; here it is read.
func Example() {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	quiet := slog.New(slog.DiscardHandler)
	store, err := memfence.New(&memfence.Options{Fence: &fence.Options{Observer: m, Logger: quiet}})
	if err != nil {
		fmt.Println(err)
		return
	}
	broker := memsource.NewBroker(&memsource.BrokerOptions{AutoCreate: 1})
	for _, id := range []string{"order-1", "order-2", "order-1", "last"} {
		_, err := broker.Produce(driver.Record{Topic: "orders", Headers: []driver.Header{{Key: "idempotency-key", Value: []byte(id)}}})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	book := effect.Idempotent(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		if in.Key == "orders:0:%-:last" {
			stop()
		}
		return effect.Receipt{}, nil
	}, effect.IdempotentOptions{Remembers: effect.Forever})
	c, err := consumer.New(broker.Source("billing", []string{"orders"}, nil), store, book, &consumer.Options{
		Producer: broker.Producer(nil), Observer: m, Logger: quiet, EndlessTopics: true, Order: consumer.OrderByPartition,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Run(ctx); err != nil {
		fmt.Println(err)
		return
	}

	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, family := range families {
		if family.GetName() != "oncefence_decisions_total" {
			continue
		}
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				fmt.Printf("%s=%s ", label.GetName(), label.GetValue())
			}
			fmt.Println(series.GetCounter().GetValue())
		}
	}
	// Output:
	// decision=done topic=orders 3
	// decision=duplicate topic=orders 1
	// decision=new topic=orders 3
}

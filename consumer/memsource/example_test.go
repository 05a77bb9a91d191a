package memsource_test

import (
	"context"
	"fmt"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
)

// handler takes what it is given and lets go at once.
type handler struct{}

func (handler) Assigned(as []driver.Assignment) {
	for _, a := range as {
		fmt.Printf("assigned %s/%d\n", a.Topic, a.Partition)
	}
}
func (handler) Revoked(context.Context, []driver.TopicPartition) { fmt.Println("revoked") }
func (handler) Lost([]driver.TopicPartition)                     {}

func Example() {
	ctx := context.Background()
	broker := memsource.NewBroker(&memsource.BrokerOptions{AutoCreate: 1})
	source := broker.Source("billing", []string{"orders"}, nil)
	if err := source.Start(ctx, nil, handler{}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := broker.Produce(driver.Record{Topic: "orders", Value: []byte("an order")}); err != nil {
		fmt.Println(err)
		return
	}

	for polled := 0; polled < 1; {
		batches, err := source.Poll(ctx, 100)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, b := range batches {
			for _, r := range b.Records {
				fmt.Printf("offset %d: %s\n", r.Offset, r.Value)
				polled++
				source.Commit(ctx, []driver.Offset{{TopicPartition: b.TopicPartition, Offset: r.Offset + 1, LeaderEpoch: r.LeaderEpoch}})
			}
		}
	}
	source.Close(ctx)
	committed, _ := broker.Committed("billing", driver.TopicPartition{Topic: "orders"})
	fmt.Println("committed", committed.Offset)
	// Output:
	// assigned orders/0
	// offset 0: an order
	// revoked
	// committed 1
}

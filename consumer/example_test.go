package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/memfence"
	"github.com/oncefence/oncefence/requeue"
)

// orders makes a broker with a topic of orders, each written under a dedupe id.
func orders(ids ...string) *memsource.Broker {
	broker := memsource.NewBroker(nil)
	if err := broker.CreateTopic("orders", nil); err != nil {
		panic(err)
	}
	for _, id := range ids {
		if _, err := broker.Produce(driver.Record{
			Topic: "orders", Key: []byte("customer 1"), Value: []byte("order " + id),
			Headers: []driver.Header{{Key: "idempotency-key", Value: []byte(id)}},
		}); err != nil {
			panic(err)
		}
	}
	return broker
}

// runUntil runs a consumer over the broker until stop is closed.
func runUntil(stop <-chan struct{}, broker *memsource.Broker, e effect.Effect, change func(o *consumer.Options)) {
	quiet := slog.New(slog.DiscardHandler)
	f, err := memfence.New(&memfence.Options{Fence: &fence.Options{Logger: quiet}})
	if err != nil {
		panic(err)
	}
	opts := &consumer.Options{Producer: broker.Producer(nil), Logger: quiet}
	if change != nil {
		change(opts)
	}
	c, err := consumer.New(broker.Source("billing", []string{"orders"}, nil), f, e, opts)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-stop
		cancel()
	}()
	if err := c.Run(ctx); err != nil {
		fmt.Println(err)
	}
}

// until counts down: the nth call of its function closes stop.
func until(n int) (stop chan struct{}, done func()) {
	stop = make(chan struct{})
	return stop, func() {
		if n--; n == 0 {
			close(stop)
		}
	}
}

// counting stops a run after a number of settled deliveries.
type counting struct {
	consumer.Observer
	words map[string]bool
	done  func()
}

func (c counting) Decided(d consumer.Decision) {
	if c.words[d.Decision] {
		c.done()
	}
}
func (counting) Delivered(int)                     {}
func (counting) Ran(string, string, time.Duration) {}
func (counting) Gauges(consumer.Gauges)            {}
func (counting) Committed(int, int)                {}

// settled makes the observer that calls done for each settled delivery.
func settled(done func()) consumer.Observer {
	return counting{done: done, words: map[string]bool{
		consumer.DecisionDone: true, consumer.DecisionDuplicate: true, consumer.DecisionDeadLetter: true, consumer.DecisionParked: true,
		consumer.DecisionConflict: true, consumer.DecisionPoison: true,
	}}
}

// A record that is delivered or produced twice has its effect once.
func Example() {
	broker := orders("1", "2", "1")
	charge := effect.Idempotent(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		fmt.Printf("charge %s\n", in.Payload)
		return effect.Receipt{}, nil
	}, effect.IdempotentOptions{Remembers: effect.Forever})

	stop, done := until(3)
	runUntil(stop, broker, charge, func(o *consumer.Options) { o.Observer = settled(done) })
	// Output:
	// charge order 1
	// charge order 2
}

// A temporary error is tried again through a delay topic; a permanent one becomes
// a dead letter.
func ExampleOptions_retries() {
	broker := orders("1", "2")
	charge := effect.Idempotent(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		switch {
		case string(in.Payload) == "order 2":
			return effect.Receipt{}, effect.Permanent(errors.New("no such customer"))
		case in.Attempt == 1:
			return effect.Receipt{}, effect.Temporary(errors.New("connection refused"))
		}
		fmt.Printf("charge %s in attempt %d\n", in.Payload, in.Attempt)
		return effect.Receipt{}, nil
	}, effect.IdempotentOptions{Remembers: effect.Forever})

	stop, done := until(2)
	runUntil(stop, broker, charge, func(o *consumer.Options) {
		o.Schedule = requeue.Schedule{Delays: []time.Duration{50 * time.Millisecond}}
		o.Observer = settled(done)
	})
	for _, r := range broker.Records("orders.billing.dlq") {
		fmt.Printf("dead letter: %s\n", r.Value)
	}
	// Output:
	// charge order 1 in attempt 2
	// dead letter: order 2
}

// With retries in place a key's later records wait, so that their order holds.
func ExampleOptions_inPlace() {
	broker := orders("1", "2")
	charge := effect.Idempotent(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		if string(in.Payload) == "order 1" && in.Attempt == 1 {
			return effect.Receipt{}, effect.Temporary(errors.New("connection refused"))
		}
		fmt.Printf("charge %s\n", in.Payload)
		return effect.Receipt{}, nil
	}, effect.IdempotentOptions{Remembers: effect.Forever})

	stop, done := until(2)
	runUntil(stop, broker, charge, func(o *consumer.Options) {
		o.InPlace = true
		o.Schedule = requeue.Schedule{Delays: []time.Duration{50 * time.Millisecond}}
		o.Observer = settled(done)
	})
	// Output:
	// charge order 1
	// charge order 2
}

// The dedupe id may come from anywhere in the record.
func ExampleOptions_dedupeID() {
	broker := memsource.NewBroker(&memsource.BrokerOptions{AutoCreate: 1})
	for _, value := range []string{"A17;9.90", "A18;5.00", "A17;9.90"} {
		if _, err := broker.Produce(driver.Record{Topic: "orders", Value: []byte(value)}); err != nil {
			panic(err)
		}
	}
	charge := effect.AtMostOnce(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		fmt.Println(in.Key)
		return effect.Receipt{}, nil
	}, nil)

	stop, done := until(3)
	runUntil(stop, broker, charge, func(o *consumer.Options) {
		o.Scope, o.Concurrency = fence.ScopeID, 1
		o.DedupeID = func(r consumer.Record) (string, error) {
			if len(r.Value) < 3 {
				return "", errors.New("no order number")
			}
			return string(r.Value[:3]), nil
		}
		o.Observer = settled(done)
	})
	// Output:
	// :::A17
	// :::A18
}

// An observer sees every decision, here those about a record whose effect ended
// without a word.
func ExampleObserver() {
	broker := orders("1")
	charge := effect.AtMostOnce(func(context.Context, effect.Input) (effect.Receipt, error) {
		return effect.Receipt{}, errors.New("time-out after the request was written")
	}, nil)

	stop, done := until(1)
	runUntil(stop, broker, charge, func(o *consumer.Options) {
		o.Observer = printing{counting: settled(done).(counting)}
	})
	// Output:
	// new at attempt 1
	// unknown at attempt 1
	// parked at attempt 1
}

type printing struct{ counting }

func (p printing) Decided(d consumer.Decision) {
	fmt.Printf("%s at attempt %d\n", d.Decision, d.Attempt)
	p.counting.Decided(d)
}

// Ready and Healthy say why not.
func ExampleConsumer_Ready() {
	broker := orders()
	f, err := memfence.New(&memfence.Options{Fence: &fence.Options{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		panic(err)
	}
	nothing := effect.AtLeastOnce(func(context.Context, effect.Input) (effect.Receipt, error) { return effect.Receipt{}, nil }, nil)
	c, err := consumer.New(broker.Source("billing", []string{"orders"}, nil), f, nothing, &consumer.Options{Producer: broker.Producer(nil)})
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Ready())
	// Output: the consumer is not running
}

// New names everything that is wrong, each with what to do.
func ExampleNew_refused() {
	broker := orders()
	charge := effect.AtMostOnce(func(context.Context, effect.Input) (effect.Receipt, error) { return effect.Receipt{}, nil }, nil)
	_, err := consumer.New(broker.Source("billing", []string{"orders"}, nil), nil, charge, &consumer.Options{Producer: broker.Producer(nil), Concurrency: -1})
	fmt.Println(err)
	// Output:
	// 2 errors occurred:
	// 	* consumer.Options.Concurrency is -1: it must be positive (0 means 32)
	// 	* consumer.New: fence is nil, and effects of kind at-most-once need one
}

// Package memsource is a broker in the memory of one process: topics with
// partitions, consumer groups that share them, committed positions. It is for
// tests, examples and programs that need the loop without a server; nothing
// outlives the process.
//
//	broker := memsource.NewBroker(nil)
//	broker.CreateTopic("orders", &memsource.TopicOptions{Partitions: 3})
//	broker.Produce(driver.Record{Topic: "orders", Key: []byte("k"), Value: []byte("v")})
//	source := broker.Source("billing", []string{"orders"}, nil)
//
// What a real broker does to a consumer can be asked for here: members that
// join, leave and are thrown out ([Source.Lose], [Source.Evict]), a rebalance
// at any time ([Broker.Rebalance]), offsets that are never delivered
// ([Broker.Skip]), open transactions ([Broker.Open]), retention
// ([Broker.Trim]), new partitions ([Broker.AddPartitions]), and failing commits
// and produces ([Fault]).
//
// The same calls give the same partitions, offsets and assignments every time.
// Everything that waits does so on channels, so a broker made inside a
// testing/synctest bubble waits durably there, and its clock is the bubble's.
// Sources have to be closed inside the bubble: each runs one goroutine.
//
// A [Broker] and its sources and producers may be used from any number of
// goroutines, as far as the driver's interfaces allow it.
package memsource

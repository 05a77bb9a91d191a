// Package account sends the lines of a crash test and works out, from the
// outside, what became of each: from its coordinates, the ledger, the fence, the
// dead letters and the group's positions, and from nothing that a member
// counted.
package account

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/requeue"
)

// Broker is the Kafka of a run with the topics of its group.
type Broker struct {
	Addrs   []string
	Topic   string
	Group   string
	Retries []string
	Dead    string
	Client  *kgo.Client
	Admin   *kadm.Client
}

// Open connects to a Kafka and creates the source topic.
func Open(ctx context.Context, addrs []string, topic, group string, partitions int32, schedule requeue.Schedule) (*Broker, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		return nil, err
	}
	b := &Broker{Addrs: addrs, Topic: topic, Group: group, Client: client, Admin: kadm.NewClient(client)}
	topics, err := requeue.NewTopics([]string{topic}, requeue.Names{Group: group}, schedule)
	if err != nil {
		client.Close()
		return nil, err
	}
	b.Retries, b.Dead = topics.Subscriptions(), topics.DeadLetter(topic)
	if _, err := b.Admin.CreateTopic(ctx, partitions, -1, nil, topic); err != nil {
		client.Close()
		return nil, fmt.Errorf("create topic %s: %w", topic, err)
	}
	return b, nil
}

// Close closes the connection and leaves the topics.
func (b *Broker) Close() { b.Client.Close() }

// Delete removes the topics, and the group's static member of that id when it
// was named.
func (b *Broker) Delete(ctx context.Context) error {
	_, err := b.Admin.DeleteTopics(ctx, append([]string{b.Topic, b.Dead}, b.Retries...)...)
	return err
}

// Remove takes static members, which do not leave on their own, out of the group.
func (b *Broker) Remove(ctx context.Context, instances ...string) error {
	_, err := b.Admin.LeaveGroup(ctx, kadm.LeaveGroup(b.Group).InstanceIDs(instances...))
	return err
}

// CaughtUp reports whether the group has committed all of its topics to their
// ends. Servers that cannot answer now are not an error.
func (b *Broker) CaughtUp(ctx context.Context) bool { return b.Behind(ctx) == "" }

// Behind says what the group has not committed, "" if it has committed all of
// its topics to their ends. Positions are read before ends, so a copy that was
// made meanwhile shows.
func (b *Broker) Behind(ctx context.Context) string {
	committed, err := b.Admin.FetchOffsets(ctx, b.Group)
	if err != nil {
		return "positions: " + err.Error()
	}
	topics := append([]string{b.Topic}, b.Retries...)
	ends, err := b.Admin.ListCommittedOffsets(ctx, topics...)
	if err != nil {
		return "ends: " + err.Error()
	}
	for _, topic := range topics {
		if len(ends[topic]) == 0 {
			return topic + " has no partitions yet"
		}
		for partition, end := range ends[topic] {
			if end.Err != nil {
				return fmt.Sprintf("%s:%d: %v", topic, partition, end.Err)
			}
			at, ok := committed.Lookup(topic, partition)
			if end.Offset > 0 && (!ok || at.At < end.Offset) {
				return fmt.Sprintf("%s:%d: committed %d (%v), the end is %d", topic, partition, at.At, ok, end.Offset)
			}
		}
	}
	return ""
}

// positions returns the group's committed positions in the source topic.
func (b *Broker) positions(ctx context.Context) (map[int32]int64, error) {
	committed, err := b.Admin.FetchOffsets(ctx, b.Group)
	if err != nil {
		return nil, err
	}
	at := make(map[int32]int64)
	for partition, o := range committed[b.Topic] {
		at[partition] = o.At
	}
	return at, nil
}

// readAll returns all committed records of a topic.
func (b *Broker) readAll(ctx context.Context, topic string) ([]*kgo.Record, error) {
	ends, err := b.Admin.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	want := make(map[int32]int64)
	offsets := make(map[int32]kgo.Offset)
	for p, end := range ends[topic] {
		if errors.Is(end.Err, kerr.UnknownTopicOrPartition) {
			continue // no member ever started
		}
		if end.Err != nil {
			return nil, fmt.Errorf("%s partition %d: %w", topic, p, end.Err)
		}
		if end.Offset > 0 {
			want[p] = end.Offset
			offsets[p] = kgo.NewOffset().AtStart()
		}
	}
	if len(want) == 0 {
		return nil, nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var records []*kgo.Record
	for len(want) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			records = append(records, r)
			if r.Offset+1 >= want[r.Partition] {
				delete(want, r.Partition)
			}
		})
	}
	return records, nil
}

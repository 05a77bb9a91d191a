package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// partitions of the source topic.
const partitions = 6

// broker is the Kafka of a run: embedded, or the one that was named.
type broker struct {
	cluster *kfake.Cluster // nil: a real one
	addrs   []string
	client  *kgo.Client
	admin   *kadm.Client
	topic   string
	group   string
	retries []string
	dead    string
}

func openBroker(ctx context.Context, addrs []string, runID string) (*broker, error) {
	b := &broker{addrs: addrs, topic: "orders", group: "orders-consumer"}
	if len(addrs) == 0 {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(0))
		if err != nil {
			return nil, fmt.Errorf("embedded broker: %w", err)
		}
		b.cluster, b.addrs = cluster, cluster.ListenAddrs()
	} else {
		b.topic, b.group = "orders-"+runID, "orders-consumer-"+runID
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		return nil, err
	}
	b.client, b.admin = client, kadm.NewClient(client)
	reach, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := client.Ping(reach); err != nil {
		return nil, fmt.Errorf("--brokers: none of %s answers: %w", joinAddrs(b.addrs), err)
	}
	if _, err := b.admin.CreateTopic(reach, partitions, -1, nil, b.topic); err != nil {
		return nil, fmt.Errorf("create topic %s: %w", b.topic, err)
	}
	return b, nil
}

// caughtUp reports whether the group has committed all of its topics to their
// ends. Positions are read before ends, so a copy that was made meanwhile shows.
func (b *broker) caughtUp(ctx context.Context) (bool, error) {
	topics := append([]string{b.topic}, b.retries...)
	committed, err := b.admin.FetchOffsets(ctx, b.group)
	if err != nil {
		if errors.Is(err, kerr.GroupIDNotFound) || kerr.IsRetriable(err) {
			return false, nil // the group is not there yet, or its coordinator moves
		}
		return false, err
	}
	ends, err := b.admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return false, err
	}
	for _, topic := range topics {
		if len(ends[topic]) == 0 {
			return false, nil
		}
		for partition, end := range ends[topic] {
			if end.Err != nil {
				return false, nil
			}
			at, ok := committed.Lookup(topic, partition)
			if end.Offset > 0 && (!ok || at.At < end.Offset) {
				return false, nil
			}
		}
	}
	return true, nil
}

// positions returns the group's committed positions in the source topic.
func (b *broker) positions(ctx context.Context) (map[int32]int64, error) {
	committed, err := b.admin.FetchOffsets(ctx, b.group)
	if err != nil {
		return nil, err
	}
	at := make(map[int32]int64)
	for partition, o := range committed[b.topic] {
		at[partition] = o.At
	}
	return at, nil
}

// readAll returns all records of a topic.
func (b *broker) readAll(ctx context.Context, topic string) ([]*kgo.Record, error) {
	ends, err := b.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	want := make(map[int32]int64)
	offsets := make(map[int32]kgo.Offset)
	for p, end := range ends[topic] {
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
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}))
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

// Close ends the embedded broker, or removes from a real one what the run made,
// unless it is to be kept.
func (b *broker) Close(ctx context.Context, keep bool) error {
	defer b.client.Close()
	if b.cluster != nil {
		b.cluster.Close()
		return nil
	}
	if keep {
		return nil
	}
	topics := append([]string{b.topic, b.dead}, b.retries...)
	topics = slices.DeleteFunc(topics, func(t string) bool { return t == "" })
	var errs []error
	deleted, err := b.admin.DeleteTopics(ctx, topics...)
	errs = append(errs, err)
	for _, d := range deleted {
		if d.Err != nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			errs = append(errs, fmt.Errorf("delete topic %s: %w", d.Topic, d.Err))
		}
	}
	if err := b.deleteGroup(ctx); err != nil {
		errs = append(errs, fmt.Errorf("delete group %s: %w", b.group, err))
	}
	return errors.Join(errs...)
}

// deleteGroup removes the group with its static members, which have not left.
func (b *broker) deleteGroup(ctx context.Context) error {
	described, err := b.admin.DescribeGroups(ctx, b.group)
	if err != nil {
		return err
	}
	var instances []string
	for _, m := range described[b.group].Members {
		if m.InstanceID != nil {
			instances = append(instances, *m.InstanceID)
		}
	}
	if len(instances) > 0 {
		if _, err := b.admin.LeaveGroup(ctx, kadm.LeaveGroup(b.group).InstanceIDs(instances...)); err != nil {
			return err
		}
	}
	deleted, err := b.admin.DeleteGroup(ctx, b.group)
	if err == nil {
		err = deleted.Err
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil
	}
	return err
}

package kafkasource_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/consumertest"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/kafkasource"
)

const session = 2 * time.Second

// world is a cluster and a client that does what is done from outside.
type world struct {
	brokers []string
	client  *kgo.Client
	admin   *kadm.Client
}

func newWorld(t testing.TB, brokers []string) *world {
	t.Helper()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(50*time.Millisecond),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &world{brokers: brokers, client: client, admin: kadm.NewClient(client)}
}

// name makes one that nobody has.
func name(prefix string) string {
	var id [5]byte
	_, _ = rand.Read(id[:])
	return prefix + "-" + hex.EncodeToString(id[:])
}

// options are what members of tests are made with.
func (w *world) options(more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(w.brokers...),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(100 * time.Millisecond),
		kgo.RebalanceTimeout(10 * time.Second),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
	}, more...)
}

func (w *world) topic(ctx context.Context, partitions int, configs map[string]*string) (string, error) {
	topic := name("topic")
	_, err := w.admin.CreateTopic(ctx, int32(partitions), 1, configs, topic)
	if err != nil {
		return "", err
	}
	// The brokers tell of a topic a little after it was made.
	for {
		details, err := w.admin.ListTopics(ctx, topic)
		if err != nil {
			return "", err
		}
		ready := len(details[topic].Partitions) == partitions
		for _, p := range details[topic].Partitions {
			ready = ready && p.Err == nil && p.Leader >= 0
		}
		if ready {
			return topic, nil
		}
		if err := wait(ctx, 10*time.Millisecond); err != nil {
			return "", err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *world) produce(ctx context.Context, records []driver.Record) error {
	out := make([]*kgo.Record, len(records))
	for i, r := range records {
		out[i] = &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp}
		for _, h := range r.Headers {
			out[i].Headers = append(out[i].Headers, kgo.RecordHeader(h))
		}
	}
	return w.client.ProduceSync(ctx, out...).FirstErr()
}

func (w *world) committed(ctx context.Context, group string, tp driver.TopicPartition) (int64, string, error) {
	all, err := w.admin.FetchOffsetsForTopics(ctx, group, tp.Topic)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return -1, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	o, ok := all.Lookup(tp.Topic, tp.Partition)
	if !ok {
		return -1, "", nil
	}
	return o.At, o.Metadata, o.Err
}

// lose throws all members out of a group.
func (w *world) lose(ctx context.Context, group string) error {
	described, err := w.admin.DescribeGroups(ctx, group)
	if err != nil {
		return err
	}
	lost := 0
	for _, m := range described[group].Members {
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Group, req.MemberID = group, m.MemberID
		member := kmsg.NewLeaveGroupRequestMember()
		member.MemberID = m.MemberID
		req.Members = append(req.Members, member)
		resp, err := req.RequestWith(ctx, w.client)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return err
		}
		lost++
	}
	if lost > 0 {
		return nil
	}
	describe := kmsg.NewPtrConsumerGroupDescribeRequest()
	describe.Groups = []string{group}
	resp, err := describe.RequestWith(ctx, w.client)
	if err != nil {
		return err
	}
	for _, g := range resp.Groups {
		for _, m := range g.Members {
			req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
			req.Group, req.MemberID, req.MemberEpoch = group, m.MemberID, -1
			resp, err := req.RequestWith(ctx, w.client)
			if err != nil {
				return err
			}
			if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
				return err
			}
			lost++
		}
	}
	if lost == 0 {
		return fmt.Errorf("group %s has no members", group)
	}
	return nil
}

// contract holds the source on a cluster to consumertest.
func (w *world) contract(t *testing.T, opts kafkasource.Options, protocol string) {
	consumertest.Test(t, consumertest.Harness{
		Topic: func(ctx context.Context, partitions int) (string, error) { return w.topic(ctx, partitions, nil) },
		Open: func(_ context.Context, group string, topics []string) (driver.Source, error) {
			return kafkasource.New(group, topics, &opts, w.options()...)
		},
		Produce:   w.produce,
		Committed: w.committed,
		Lose: func(ctx context.Context, source driver.Source) error {
			info := source.Info()
			if info.Protocol != protocol {
				return fmt.Errorf("the protocol in use is %q, want %q", info.Protocol, protocol)
			}
			return w.lose(ctx, info.Group)
		},
		Session:  session,
		Parallel: true,
	})
}

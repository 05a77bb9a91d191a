package kafkarequeue

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The topic settings that matter here.
const (
	cleanupPolicy   = "cleanup.policy"
	retentionMs     = "retention.ms"
	retentionBytes  = "retention.bytes"
	maxMessageBytes = "max.message.bytes"
	minInsync       = "min.insync.replicas"
	timestampType   = "message.timestamp.type"
)

// topic is what the brokers say about a topic.
type topic struct {
	partitions int
	replicas   int // of the partition that has the fewest
	ready      bool
	config     map[string]string
}

// number returns a setting, or otherwise if the broker does not say.
func (t topic) number(name string, otherwise int) int {
	n, err := strconv.ParseInt(t.config[name], 10, 64)
	if err != nil {
		return otherwise
	}
	return int(n)
}

// look asks for the topics; those that do not exist are absent from the answer.
func (p *producer) look(ctx context.Context, names []string) (map[string]topic, error) {
	if len(names) == 0 {
		return nil, nil
	}
	seen, err := p.lookMetadata(ctx, names)
	if err != nil || len(seen) == 0 {
		return seen, err
	}
	return seen, p.lookConfigs(ctx, seen)
}

func (p *producer) lookMetadata(ctx context.Context, names []string) (map[string]topic, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return nil, fmt.Errorf("kafka requeue: ask the brokers about topics: %w", err)
	}
	seen := map[string]topic{}
	for _, rt := range resp.Topics {
		if rt.Topic == nil {
			continue
		}
		switch err := kerr.ErrorForCode(rt.ErrorCode); {
		case err == nil, errors.Is(err, kerr.LeaderNotAvailable):
			seen[*rt.Topic] = topicOf(rt)
		case errors.Is(err, kerr.UnknownTopicOrPartition):
		default:
			return nil, fmt.Errorf("kafka requeue: topic %s: %w", *rt.Topic, err)
		}
	}
	return seen, nil
}

func topicOf(rt kmsg.MetadataResponseTopic) topic {
	t := topic{partitions: len(rt.Partitions), ready: len(rt.Partitions) > 0, config: map[string]string{}}
	for i, partition := range rt.Partitions {
		if partition.Leader < 0 {
			t.ready = false
		}
		if n := len(partition.Replicas); i == 0 || n < t.replicas {
			t.replicas = n
		}
	}
	return t
}

// lookConfigs fills in the settings. A topic that is gone meanwhile is taken out.
func (p *producer) lookConfigs(ctx context.Context, seen map[string]topic) error {
	req := kmsg.NewPtrDescribeConfigsRequest()
	for name := range seen {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType = kmsg.ConfigResourceTypeTopic
		r.ResourceName = name
		r.ConfigNames = []string{cleanupPolicy, retentionMs, retentionBytes, maxMessageBytes, minInsync, timestampType}
		req.Resources = append(req.Resources, r)
	}
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return fmt.Errorf("kafka requeue: ask the brokers about topic settings: %w", err)
	}
	for _, r := range resp.Resources {
		switch err := kerr.ErrorForCode(r.ErrorCode); {
		case err == nil:
			for _, c := range r.Configs {
				if c.Value != nil {
					seen[r.ResourceName].config[c.Name] = *c.Value
				}
			}
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			delete(seen, r.ResourceName)
		default:
			return fmt.Errorf("kafka requeue: topic %s: its settings cannot be read: %w: allow DescribeConfigs on it", r.ResourceName, err)
		}
	}
	return nil
}

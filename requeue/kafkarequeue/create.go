package kafkarequeue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
)

// headerRoom is what a topic that is made here takes beyond the source topic's
// largest record: room for the library's headers.
const headerRoom = 64 << 10

// create makes the missing topics, or says how to.
func (p *producer) create(ctx context.Context, missing []driver.TopicSpec, seen map[string]topic) error {
	if p.opts.Create == CreateNever {
		var errs []error
		for _, spec := range missing {
			errs = append(errs, fmt.Errorf("kafka requeue: topic %s does not exist: make it with: %s (or leave out CreateNever)", spec.Topic, createCommand(spec, seen[spec.Like])))
		}
		return errors.Join(errs...)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(readyTimeout / time.Millisecond)
	for _, spec := range missing {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic = spec.Topic
		t.NumPartitions = int32(seen[spec.Like].partitions)
		t.ReplicationFactor = int16(seen[spec.Like].replicas)
		for _, s := range settings(spec, seen[spec.Like]) {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = s.name, kmsg.StringPtr(s.value)
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return fmt.Errorf("kafka requeue: create topics: %w", err)
	}
	return p.created(ctx, resp, missing, seen)
}

// created reads the answers to a request to make topics.
func (p *producer) created(ctx context.Context, resp *kmsg.CreateTopicsResponse, missing []driver.TopicSpec, seen map[string]topic) error {
	byName := map[string]driver.TopicSpec{}
	for _, spec := range missing {
		byName[spec.Topic] = spec
	}
	var errs []error
	for _, t := range resp.Topics {
		spec := byName[t.Topic]
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case err == nil:
			p.log.InfoContext(ctx, "topic made", "topic", t.Topic, "like", spec.Like)
		case errors.Is(err, kerr.TopicAlreadyExists), errors.Is(err, kerr.RequestTimedOut):
			// Another member was faster, or it will be there soon: what is there
			// is looked at again.
		default:
			reason := ""
			if t.ErrorMessage != nil {
				reason = " (" + *t.ErrorMessage + ")"
			}
			errs = append(errs, fmt.Errorf("kafka requeue: topic %s cannot be made: %w%s: make it with: %s", t.Topic, err, reason, createCommand(spec, seen[spec.Like])))
		}
	}
	return errors.Join(errs...)
}

type setting struct{ name, value string }

// settings returns what a topic is made with.
func settings(spec driver.TopicSpec, source topic) []setting {
	stamp := "CreateTime"
	if spec.AppendTime {
		stamp = logAppendTime
	}
	all := []setting{
		{cleanupPolicy, "delete"},
		{maxMessageBytes, strconv.Itoa(min(source.number(maxMessageBytes, unknownLimit)+headerRoom, math.MaxInt32))},
		{timestampType, stamp},
		{retentionBytes, "-1"},
	}
	if ms := spec.Retention.Milliseconds(); ms > 0 {
		all = append(all, setting{retentionMs, strconv.FormatInt(ms, 10)})
	}
	if n := source.number(minInsync, 0); n > 0 {
		all = append(all, setting{minInsync, strconv.Itoa(n)})
	}
	return all
}

func createCommand(spec driver.TopicSpec, source topic) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kafka-topics.sh --bootstrap-server BROKERS --create --topic %s --partitions %d --replication-factor %d", spec.Topic, source.partitions, source.replicas)
	for _, s := range settings(spec, source) {
		fmt.Fprintf(&b, " --config %s=%s", s.name, s.value)
	}
	return b.String()
}

package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
)

// readBytes bounds one answer of Read. A broker sends the first batch whole,
// however large it is.
const readBytes = 1 << 20

// Read implements [driver.Reader]: one fetch by hand, beside the group.
func (s *source) Read(ctx context.Context, tp driver.TopicPartition, offset int64) (driver.Record, error) {
	s.mu.Lock()
	client := s.client
	id := [16]byte{}
	if facts := s.known[tp.Topic]; facts != nil {
		id = facts.id
	}
	s.mu.Unlock()
	fail := func(err error) (driver.Record, error) {
		return driver.Record{}, fmt.Errorf("read %s partition %d offset %d: %w", tp.Topic, tp.Partition, offset, err)
	}
	if client == nil {
		return fail(driver.ErrClosed)
	}
	leader, err := leaderOf(ctx, client, tp)
	if err != nil {
		return fail(err)
	}
	answer, err := client.Broker(int(leader)).RetriableRequest(ctx, fetchOne(tp, id, offset))
	if err != nil {
		return fail(err)
	}
	response, ok := answer.(*kmsg.FetchResponse)
	if !ok || len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return fail(kerr.ErrorForCode(-1))
	}
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return fail(err)
	}
	fetched, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: offset, Topic: tp.Topic, Partition: tp.Partition,
	}, &response.Topics[0].Partitions[0], kgo.DefaultDecompressor(), nil)
	if fetched.Err != nil {
		return fail(fetched.Err)
	}
	if len(fetched.Records) == 0 || fetched.Records[0].Offset != offset {
		return fail(errors.New("the record is not there any more"))
	}
	return records(fetched.Records[:1], id)[0], nil
}

// leaderOf waits until the client knows the partition's leader.
func leaderOf(ctx context.Context, client *kgo.Client, tp driver.TopicPartition) (int32, error) {
	for {
		leader, _, err := client.PartitionLeader(tp.Topic, tp.Partition)
		if leader >= 0 {
			return leader, nil
		}
		client.ForceMetadataRefresh()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return 0, fmt.Errorf("the partition has no leader: %w", errors.Join(err, ctx.Err()))
		}
	}
}

func fetchOne(tp driver.TopicPartition, id [16]byte, offset int64) *kmsg.FetchRequest {
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.Partition = tp.Partition
	partition.FetchOffset = offset
	partition.PartitionMaxBytes = readBytes
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = tp.Topic, id
	topic.Partitions = append(topic.Partitions, partition)
	request := kmsg.NewPtrFetchRequest()
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes = 100, 1, readBytes
	request.SessionEpoch = -1 // no fetch session
	request.Topics = append(request.Topics, topic)
	return request
}

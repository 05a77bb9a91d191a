package kafkarequeue_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/requeue/kafkarequeue"
)

func TestOptionsThatBreakThePromiseAreRefusedByName(t *testing.T) {
	for name, opts := range map[string][]kgo.Opt{
		"RequiredAcks":                   {kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()},
		"DisableIdempotentWrite":         {kgo.DisableIdempotentWrite()},
		"RecordDeliveryTimeout":          {kgo.RecordDeliveryTimeout(time.Hour)},
		"RecordPartitioner":              {kgo.RecordPartitioner(kgo.ManualPartitioner())},
		"ProducerBatchMaxBytes":          {kgo.ProducerBatchMaxBytes(1000)},
		"ManualFlushing":                 {kgo.ManualFlushing()},
		"ProducerLinger":                 {kgo.ProducerLinger(time.Second)},
		"StopProducerOnDataLossDetected": {kgo.StopProducerOnDataLossDetected()},
		"AllowAutoTopicCreation":         {kgo.AllowAutoTopicCreation()},
		"DefaultProduceTopicAlways":      {kgo.DefaultProduceTopic("t"), kgo.DefaultProduceTopicAlways()},
		"ConsumerGroup":                  {kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t")},
		"ShareGroup":                     {kgo.ShareGroup("g"), kgo.ConsumeTopics("t")},
		"ConsumeTopics":                  {kgo.ConsumeTopics("t")},
		"ConsumePartitions":              {kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset()}})},
	} {
		p, err := kafkarequeue.New(nil, opts...)
		if p != nil {
			t.Errorf("%s: a producer was made", name)
		}
		wantErrors(t, name, err, "option kgo."+name, "is refused: ")
	}
	// This one does not go together with what New sets; franz-go says so.
	_, err := kafkarequeue.New(nil, kgo.TransactionalID("id"))
	wantErrors(t, "TransactionalID", err, "ransactional")
}

func TestOptionsThatAreFine(t *testing.T) {
	newProducer(
		t, &kafkarequeue.Options{DeliveryTimeout: time.Second, Log: slog.Default()},
		kgo.SeedBrokers("127.0.0.1:1"), kgo.ClientID("billing"), kgo.ProducerBatchCompression(kgo.ZstdCompression()),
		kgo.ProducerLinger(5*time.Millisecond), kgo.DefaultProduceTopic("t"), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.Rack("a"), kgo.MaxBufferedRecords(10),
	)
	newProducer(t, &kafkarequeue.Options{})
}

func TestOwnOptionsAreChecked(t *testing.T) {
	for name, opts := range map[string]*kafkarequeue.Options{
		"DeliveryTimeout -1ns": {DeliveryTimeout: -1},
		"DeliveryTimeout 10ms": {DeliveryTimeout: 10 * time.Millisecond},
		"Create 2":             {Create: kafkarequeue.CreateNever + 1},
	} {
		_, err := kafkarequeue.New(opts)
		wantErrors(t, name, err, "Options."+name)
	}
}

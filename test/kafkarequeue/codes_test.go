package kafkarequeue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/requeue/kafkarequeue"
)

// produceCodes are all codes that a broker may answer a produce request with,
// and all others that franz-go knows.
func produceCodes() []*kerr.Error {
	var codes []*kerr.Error
	for code := int16(-1); code < 200; code++ {
		var known *kerr.Error
		if err := kerr.ErrorForCode(code); errors.As(err, &known) && known.Code == code {
			codes = append(codes, known)
		}
	}
	return codes
}

// answerProduce makes the cluster answer produce requests with a code, as a real
// broker does: without an offset and without writing anything. It does so for
// the first n requests, for all if n is negative.
func answerProduce(cluster *kfake.Cluster, code int16, n int) {
	cluster.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		if n == 0 {
			return nil, nil, false
		}
		n--
		cluster.KeepControl()
		return refused(kreq.(*kmsg.ProduceRequest), code), nil, true
	})
}

// refused answers all of a request with a code.
func refused(req *kmsg.ProduceRequest, code int16) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, rt := range req.Topics {
		t := kmsg.NewProduceResponseTopic()
		t.Topic, t.TopicID = rt.Topic, rt.TopicID
		for _, rp := range rt.Partitions {
			p := kmsg.NewProduceResponseTopicPartition()
			p.Partition, p.ErrorCode, p.BaseOffset = rp.Partition, code, -1
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// For no code is a record acknowledged that is not in the topic, whether the
// broker says it once and then works, or again and again.
func TestNoCodeAcknowledgesWhatIsNotThere(t *testing.T) {
	codes := produceCodes()
	if len(codes) < 100 {
		t.Fatalf("only %d codes are known: the table is empty", len(codes))
	}
	for _, code := range codes {
		for times, name := range map[int]string{1: "once", -1: "always"} {
			t.Run(code.Message+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { produceAgainst(t, code, times) })
			})
		}
	}
}

func produceAgainst(t *testing.T, code *kerr.Error, times int) {
	var net kfake.VirtualNetwork
	cluster := fake(t, kfake.NumBrokers(1), kfake.Ports(9092), kfake.ListenFn(net.Listen), kfake.SeedTopics(1, "orders"))
	p, err := kafkarequeue.New(&kafkarequeue.Options{DeliveryTimeout: 10 * time.Second, Log: quiet}, kgo.SeedBrokers("localhost:9092"), kgo.Dialer(net.DialContext))
	if err != nil {
		t.Fatal(err)
	}
	ensure(t, p, driver.TopicSpec{Topic: "orders.g.dlq", Like: "orders"})
	answerProduce(cluster, code.Code, times)
	start := time.Now()
	errs := p.Produce(t.Context(), []driver.Record{{Topic: "orders.g.dlq", Key: []byte("k"), Value: []byte("1")}, {Topic: "orders.g.dlq", Key: []byte("k"), Value: []byte("2")}})
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("Produce took %v, want at most 10s", took)
	}
	there := cluster.PartitionInfo("orders.g.dlq", 0).HighWatermark
	acknowledged := int64(0)
	for i, err := range errs {
		if err == nil {
			acknowledged++
		} else if tooLarge := errors.Is(code, kerr.MessageTooLarge) || errors.Is(code, kerr.RecordListTooLarge); errors.Is(err, driver.ErrTooLarge) != (tooLarge && times < 0) {
			t.Errorf("record %d: %v: matches ErrTooLarge: %v", i, err, errors.Is(err, driver.ErrTooLarge))
		}
	}
	if acknowledged > there {
		t.Errorf("%d records acknowledged, %d are there: %v", acknowledged, there, errs)
	}
	if times < 0 && acknowledged > 0 {
		t.Errorf("acknowledged although the broker said %s: %v", code.Message, errs)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Error(err)
	}
	cluster.Close()
}

package kafkarequeue

import (
	"fmt"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxLinger is the longest linger that a user may ask for: it delays every
// settlement that waits for a copy.
const maxLinger = 100 * time.Millisecond

// keyPartitioner is the only partitioner that is accepted. It hashes the key
// bytes as the Java client does, so a key stays in one partition, and spreads
// records without a key.
type keyPartitioner struct{ kgo.Partitioner }

// refusal is an option that would break the promise.
type refusal struct {
	option string // kgo.<option>
	broken func(value any) bool
	why    string
}

func (p *producer) refusals() []refusal {
	const sourceOnly = "this client only produces: hand it to the source alone"
	return []refusal{
		{"RequiredAcks", not(kgo.AllISRAcks()), "a copy counts only when all in-sync replicas have it"},
		{"DisableIdempotentWrite", set, "batches that are sent again would be there twice and out of order"},
		{"TransactionalID", set, "copies are not part of a transaction, and another producer with this id would be fenced"},
		{"AllowIdempotentProduceCancellation", not(true), "Produce could not give up in time when a broker is cut off"},
		{"RecordDeliveryTimeout", not(p.opts.DeliveryTimeout), "set Options.DeliveryTimeout"},
		{"RecordPartitioner", not(p.partitioner), "copies of one key must stay in one partition"},
		{"ProducerBatchMaxBytesFn", p.otherBatchLimit, "a batch may be as large as its topic's max.message.bytes; leave out ProducerBatchMaxBytes too"},
		{"ManualFlushing", set, "nothing would be sent"},
		{"ProducerLinger", tooLong, fmt.Sprintf("use at most %v: every settlement waits for it", maxLinger)},
		{"StopProducerOnDataLossDetected", set, "one such error would stop it for ever"},
		{"AllowAutoTopicCreation", set, "topics would be made with the broker's defaults; Ensure makes them"},
		{"DefaultProduceTopicAlways", set, "all copies would go to one topic"},
		{"ConsumerGroup", set, sourceOnly},
		{"ShareGroup", set, sourceOnly},
		{"ConsumeTopics", set, sourceOnly},
		{"ConsumePartitions", set, sourceOnly},
	}
}

// refuse looks at the options that the client really has.
func (p *producer) refuse(cl *kgo.Client) error {
	for _, r := range p.refusals() {
		if r.broken(cl.OptValue(r.option)) {
			return fmt.Errorf("kafka requeue: option kgo.%s is refused: %s", r.option, r.why)
		}
	}
	return nil
}

func (p *producer) otherBatchLimit(value any) bool {
	return reflect.ValueOf(value).Pointer() != reflect.ValueOf(p.batchLimit).Pointer()
}

func tooLong(value any) bool { return value.(time.Duration) > maxLinger }

// set reports whether a value is neither its type's zero value nor empty.
func set(value any) bool {
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid():
		return false
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Map:
		return v.Len() > 0
	default:
		return !v.IsZero()
	}
}

// not reports whether a value is another than want.
func not(want any) func(any) bool {
	return func(value any) bool { return value != want }
}

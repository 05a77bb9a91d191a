package kafkasource

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
)

// nobody is a handler that does nothing.
type nobody struct{}

func (nobody) Assigned([]driver.Assignment)                     {}
func (nobody) Revoked(context.Context, []driver.TopicPartition) {}
func (nobody) Lost([]driver.TopicPartition)                     {}

func fetched(n, headers int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: "t", Partition: 3, Offset: int64(10 + i), LeaderEpoch: 4, Key: []byte{}, Timestamp: time.UnixMilli(5)}
		for h := range headers {
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: fmt.Sprint(i), Value: []byte{byte(h)}})
		}
	}
	return records
}

func TestConversionCostsTwoAllocationsABatch(t *testing.T) {
	in := fetched(500, 3)
	id := [16]byte{7}
	var out []driver.Record
	if n := testing.AllocsPerRun(20, func() { out = records(in, id) }); n > 2 {
		t.Errorf("%v allocations for 500 records, want 2", n)
	}
	if len(out) != 500 {
		t.Fatalf("%d records", len(out))
	}
	for i, r := range out {
		if r.Offset != int64(10+i) || r.Topic != "t" || r.Partition != 3 || r.LeaderEpoch != 4 || r.TopicID != id || r.Key == nil || r.Value != nil {
			t.Fatalf("record %d: %+v", i, r)
		}
		if len(r.Headers) != 3 || r.Headers[0].Key != fmt.Sprint(i) || r.Headers[2].Value[0] != 2 {
			t.Fatalf("record %d has headers %v", i, r.Headers)
		}
		if cap(r.Headers) != 3 {
			t.Fatalf("an append to the headers of record %d would write into the next one's", i)
		}
	}
}

func TestRecordsWithoutHeadersHaveNone(t *testing.T) {
	if out := records(fetched(1, 0), [16]byte{}); out[0].Headers != nil {
		t.Errorf("headers %v", out[0].Headers)
	}
}

func BenchmarkConversion(b *testing.B) {
	in := fetched(500, 3)
	b.ReportAllocs()
	for b.Loop() {
		records(in, [16]byte{})
	}
}

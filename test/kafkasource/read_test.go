package kafkasource_test

import (
	"context"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/kafkasource"
	"github.com/oncefence/oncefence/test/servers"
)

type quiet struct{}

func (quiet) Assigned([]driver.Assignment)                     {}
func (quiet) Revoked(context.Context, []driver.TopicPartition) {}
func (quiet) Lost([]driver.TopicPartition)                     {}

// TestReadsARecordAgain: a conflict's diff reads the first payload at its
// coordinates, beside the group.
func TestReadsARecordAgain(t *testing.T) {
	for name, brokers := range map[string]func(t *testing.T) []string{
		"fake": func(t *testing.T) []string { return fake(t).ListenAddrs() },
		"real": func(t *testing.T) []string { return servers.Kafka(t).Brokers() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			w := newWorld(t, brokers(t))
			topic, err := w.topic(ctx, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			var records []driver.Record
			for _, v := range []string{"first", "second", "third"} {
				records = append(records, driver.Record{Topic: topic, Key: []byte("k"), Value: []byte(v), Headers: []driver.Header{{Key: "h", Value: []byte(v)}}})
			}
			if err := w.produce(ctx, records); err != nil {
				t.Fatal(err)
			}
			source, err := kafkasource.New(name, []string{topic}, nil, w.options()...)
			if err != nil {
				t.Fatal(err)
			}
			if err := source.Start(ctx, nil, quiet{}); err != nil {
				t.Fatal(err)
			}
			defer source.Close(ctx)
			reader, ok := source.(driver.Reader)
			if !ok {
				t.Fatal("the source cannot read a record again")
			}
			tp := driver.TopicPartition{Topic: topic}
			got, err := reader.Read(ctx, tp, 1)
			if err != nil || string(got.Value) != "second" || string(got.Key) != "k" || got.Offset != 1 || len(got.Headers) != 1 {
				t.Errorf("read offset 1: %+v, %v", got, err)
			}
			if _, err := reader.Read(ctx, tp, 99); err == nil {
				t.Error("read of an offset that is not there: no error")
			}
		})
	}
}

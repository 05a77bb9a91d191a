package consumertest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

var deliveryRules = []Rule{
	{
		Name: "delivery/all", Says: "every record is delivered once in an assignment, by partition in offset order",
		check: func(s *scene) {
			topic := s.topic(3)
			for p := range int32(3) {
				s.produce(of(topic, p), 50)
			}
			m := s.start(topic)
			for round := range 3 {
				for p := range int32(3) {
					s.gets(m, of(topic, p), 0, 50+10*round)
				}
				for p := range int32(3) {
					if round < 2 {
						s.produce(of(topic, p), 10)
					}
				}
			}
			s.stays(m, of(topic, 0))
		},
	},
	{
		Name: "delivery/limit", Says: "a poll gives at most as many records as were asked for, and the next goes on behind them",
		check: func(s *scene) {
			topic := s.topic(2)
			s.produce(of(topic, 0), 20)
			s.produce(of(topic, 1), 20)
			m := s.open(topic)
			m.start()
			m.poll(3)
			s.gets(m, of(topic, 0), 0, 20)
			s.gets(m, of(topic, 1), 0, 20)
		},
	},
	{
		Name: "delivery/nil-and-empty", Says: "keys and values that are nil, empty or any bytes arrive as they were",
		check: func(s *scene) {
			odd := []byte{0, 0xff, 0xfe, '\n', 0x80}
			var sent []driver.Record
			for _, key := range [][]byte{nil, {}, odd} {
				for _, value := range [][]byte{nil, {}, odd} {
					sent = append(sent, driver.Record{Key: key, Value: value})
				}
			}
			s.roundTrip(sent)
		},
	},
	{
		Name: "delivery/headers", Says: "headers keep their order, their repetitions and the difference between nil and empty",
		check: func(s *scene) {
			s.roundTrip([]driver.Record{
				{Value: []byte("none")},
				{Value: []byte("some"), Headers: []driver.Header{
					{Key: "b", Value: []byte("1")},
					{Key: "a", Value: []byte("2")},
					{Key: "b", Value: []byte("3")},
					{Key: "B", Value: nil},
					{Key: "", Value: []byte{}},
					{Key: "b", Value: []byte{0, 0xff}},
				}},
				{Value: []byte("another"), Headers: []driver.Header{{Key: "a", Value: []byte("4")}}},
			})
		},
	},
	{
		Name: "delivery/big", Says: "a value of 900,000 bytes arrives",
		check: func(s *scene) {
			value := make([]byte, 900_000)
			for i := range value {
				value[i] = byte(i * i >> 3)
			}
			s.roundTrip([]driver.Record{{Value: []byte("before")}, {Value: value}, {Value: []byte("behind")}})
		},
	},
	{
		Name: "delivery/timestamp", Says: "the producer's timestamp arrives to the millisecond and is not called the broker's",
		check: func(s *scene) {
			at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
			got := s.roundTrip([]driver.Record{{Value: []byte("v"), Timestamp: at}})
			s.want(got[0].Timestamp.Equal(at), "timestamp %v, want %v", got[0].Timestamp, at)
			s.want(!got[0].AppendTime, "the timestamp is said to be the broker's append time")
		},
	},
}

// roundTrip produces records to one partition and compares what is delivered.
func (s *scene) roundTrip(sent []driver.Record) []driver.Record {
	tp := of(s.topic(1), 0)
	for i := range sent {
		sent[i].Topic, sent[i].Partition = tp.Topic, tp.Partition
	}
	s.must(s.h.Produce(s.ctx, sent), "the harness produces")
	m := s.start(tp.Topic)
	s.await(m, fmt.Sprintf("delivery of %d records", len(sent)), func() bool {
		return m.last[tp] != nil && len(m.last[tp].records) >= len(sent)
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	got := m.last[tp].records
	s.want(len(got) == len(sent), "%d records came, %d were sent", len(got), len(sent))
	for i := range sent {
		s.want(same(got[i].Key, sent[i].Key), "record %d: key %s, want %s", i, show(got[i].Key), show(sent[i].Key))
		s.want(same(got[i].Value, sent[i].Value), "record %d: value %s, want %s", i, show(got[i].Value), show(sent[i].Value))
		s.want(len(got[i].Headers) == len(sent[i].Headers), "record %d: %d headers, want %d", i, len(got[i].Headers), len(sent[i].Headers))
		for j, h := range sent[i].Headers {
			g := got[i].Headers[j]
			s.want(g.Key == h.Key && same(g.Value, h.Value), "record %d: header %d is %q with %s, want %q with %s", i, j, g.Key, show(g.Value), h.Key, show(h.Value))
		}
	}
	return got
}

// same compares bytes and tells nil from empty.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func show(b []byte) string {
	switch {
	case b == nil:
		return "nil"
	case len(b) > 16:
		return fmt.Sprintf("%d bytes", len(b))
	}
	return fmt.Sprintf("%q", b)
}

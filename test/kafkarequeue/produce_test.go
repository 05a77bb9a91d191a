package kafkarequeue_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/requeue"
)

func noErrors(t testing.TB, errs []error) {
	t.Helper()
	for i, err := range errs {
		if err != nil {
			t.Errorf("record %d: %v", i, err)
		}
	}
}

// toDriver is a record as a source hands it out.
func toDriver(r *kgo.Record) driver.Record {
	rec := driver.Record{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, LeaderEpoch: r.LeaderEpoch,
		Key: r.Key, Value: r.Value, Timestamp: r.Timestamp, AppendTime: r.Attrs.TimestampType() == 1,
	}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, driver.Header{Key: h.Key, Value: h.Value})
	}
	return rec
}

func TestACopyComesBackAsItWas(t *testing.T) {
	both(t, func(t *testing.T, brokers []string) {
		a := newAdmin(t, brokers)
		source := a.make(t, unique("orders"), 2, nil)
		topics, err := requeue.NewTopics([]string{source}, requeue.Names{Group: "billing"}, requeue.Schedule{})
		if err != nil {
			t.Fatal(err)
		}
		p := newProducer(t, nil, kgo.SeedBrokers(brokers...))
		ensure(t, p, topics.Specs(day)...)
		for _, kv := range [][2][]byte{{nil, nil}, {{}, {}}, {[]byte("k\x00"), {0xff, 0x00}}} {
			carrier := driver.Record{
				Topic: source, Partition: 1, Offset: 12, LeaderEpoch: 3, Key: kv[0], Value: kv[1],
				Headers: []driver.Header{{Key: "twice", Value: []byte{0xfe}}, {Key: "twice"}, {Key: "empty", Value: []byte{}}, {Key: "oncefence-key", Value: []byte("mine")}, {Key: ""}},
			}
			c := requeue.Copy{
				KeyText: "orders:1:k:7", Namespace: "%-:billing", Attempt: 2, Step: 1, Delay: 980 * time.Millisecond,
				Origin: requeue.Origin{Topic: source, Partition: 1, Offset: 12, LeaderEpoch: 3, TopicID: [16]byte{1}, Timestamp: time.UnixMilli(1_770_000_000_123).UTC()},
				Reason: "temporary", Error: "busy",
			}
			topic := topics.RetryTopic(source, c.Delay)
			rec, err := requeue.Encode(c, carrier, topic, 0)
			if err != nil {
				t.Fatal(err)
			}
			sent := time.Now()
			n := int(a.records(t, topic))
			noErrors(t, p.Produce(t.Context(), []driver.Record{rec}))
			all := a.read(t, topic, n+1)
			slices.SortFunc(all, func(x, y *kgo.Record) int { return x.Timestamp.Compare(y.Timestamp) })
			back := toDriver(all[n])
			read, user, err := requeue.Decode(back)
			if err != nil {
				t.Fatal(err)
			}
			if read != c {
				t.Errorf("read back\n%+v, want\n%+v", read, c)
			}
			for i, h := range user {
				if want := carrier.Headers[i]; h.Key != want.Key || !bytes.Equal(h.Value, want.Value) || (h.Value == nil) != (want.Value == nil) {
					t.Errorf("header %d is %q, want %q", i, h, want)
				}
			}
			if len(user) != len(carrier.Headers) || !same(back.Key, kv[0]) || !same(back.Value, kv[1]) {
				t.Errorf("read back %d headers, key %q, value %q, want %d, %q, %q", len(user), back.Key, back.Value, len(carrier.Headers), kv[0], kv[1])
			}
			if real := strings.HasSuffix(t.Name(), "/real"); back.AppendTime != real { // the embedded one does not mark it
				t.Errorf("append time: %v, want %v", back.AppendTime, real)
			}
			place, _ := topics.Lookup(topic)
			var clock requeue.AppendClock
			now := time.Now()
			if due := requeue.Due(place, back, read, now, clock.Offset(back, now)); due.Before(sent.Add(c.Delay)) || due.After(now.Add(c.Delay)) {
				t.Errorf("due %v after it was sent, want at least %v and at most that after receipt", due.Sub(sent), c.Delay)
			}
		}
	})
}

func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// Twelve partitions of a source, three of a copy topic: the same key always in
// the same partition, all of them used, none out of range.
func TestPartitionFollowsTheKeyBytes(t *testing.T) {
	both(t, func(t *testing.T, brokers []string) {
		a := newAdmin(t, brokers)
		source := a.make(t, unique("orders"), 12, nil)
		copies := a.make(t, unique("copies"), 3, nil)
		p := newProducer(t, nil, kgo.SeedBrokers(brokers...))
		ensure(t, p, driver.TopicSpec{Topic: copies, Like: source})
		var records []driver.Record
		for i := range 300 {
			records = append(records, driver.Record{Topic: copies, Partition: 11, Key: fmt.Appendf(nil, "key-%d", i%100)})
		}
		noErrors(t, p.Produce(t.Context(), records))
		partitionOf, used := map[string]int32{}, map[int32]bool{}
		hash := kgo.StickyKeyPartitioner(nil).ForTopic(copies)
		for _, r := range a.read(t, copies, 300) {
			if before, ok := partitionOf[string(r.Key)]; ok && before != r.Partition {
				t.Fatalf("key %q is in partitions %d and %d", r.Key, before, r.Partition)
			}
			partitionOf[string(r.Key)], used[r.Partition] = r.Partition, true
			if want := hash.Partition(&kgo.Record{Key: r.Key}, 3); int(r.Partition) != want {
				t.Fatalf("key %q is in partition %d, Kafka's hash says %d", r.Key, r.Partition, want)
			}
		}
		if len(partitionOf) != 100 || len(used) != 3 {
			t.Errorf("%d keys in %d partitions, want 100 in 3", len(partitionOf), len(used))
		}
	})
}

func TestRecordsWithoutAKeySpread(t *testing.T) {
	cluster := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(4, "orders", "copies"))
	p := newProducer(t, nil, kgo.SeedBrokers(cluster.ListenAddrs()...))
	ensure(t, p, driver.TopicSpec{Topic: "copies", Like: "orders"})
	for range 40 {
		noErrors(t, p.Produce(t.Context(), []driver.Record{{Topic: "copies", Value: make([]byte, 40_000)}}))
	}
	used := 0
	for _, info := range cluster.PartitionInfos("copies") {
		if info.HighWatermark > 0 {
			used++
		}
	}
	if used < 2 {
		t.Errorf("%d of 4 partitions used", used)
	}
}

// requeue.Size is the size of the batch that goes over the wire.
func TestSizeIsTheBrokersSize(t *testing.T) {
	cluster := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "copies"))
	p := newProducer(t, nil, kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ProducerBatchCompression(kgo.NoCompression()))
	ensure(t, p, driver.TopicSpec{Topic: "copies", Like: "orders"})
	var size atomic.Int64
	cluster.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		size.Store(int64(len(kreq.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records)))
		return nil, nil, false
	})
	rng := rand.New(rand.NewPCG(1, 1))
	bytesOf := func(most int) []byte {
		if rng.IntN(4) == 0 {
			return nil
		}
		return make([]byte, rng.IntN(most))
	}
	for range 60 {
		rec := driver.Record{Topic: "copies", Key: bytesOf(200), Value: bytesOf(20_000)}
		for range rng.IntN(100) {
			rec.Headers = append(rec.Headers, driver.Header{Key: string(make([]byte, rng.IntN(200))), Value: bytesOf(200)})
		}
		noErrors(t, p.Produce(t.Context(), []driver.Record{rec}))
		if got := int64(requeue.Size(rec)); got != size.Load() {
			t.Fatalf("Size says %d, the broker got %d", got, size.Load())
		}
	}
}

func TestTooLargeIsAboutTheRecordItself(t *testing.T) {
	both(t, func(t *testing.T, brokers []string) {
		a := newAdmin(t, brokers)
		source := a.make(t, unique("orders"), 1, map[string]string{"max.message.bytes": "10000"})
		copies := a.make(t, unique("copies"), 1, map[string]string{"max.message.bytes": "20000"})
		p := newProducer(t, nil, kgo.SeedBrokers(brokers...))
		ensure(t, p, driver.TopicSpec{Topic: copies, Like: source})
		most := p.(requeue.Sizer).MaxBytes(copies)
		if most < 19_900 || most > 20_000 {
			t.Fatalf("MaxBytes is %d, want a little less than 20000", most)
		}
		noise := make([]byte, 30_000) // does not compress
		for i := range noise {
			noise[i] = byte(rand.Uint32())
		}
		fits := driver.Record{Topic: copies, Key: []byte("k"), Value: noise[:most]}
		for requeue.Size(fits) > most {
			fits.Value = fits.Value[:len(fits.Value)-1]
		}
		errs := p.Produce(t.Context(), []driver.Record{
			fits,
			{Topic: copies, Key: []byte("k"), Value: noise},
			fits,
			{Topic: copies, Key: []byte("k"), Value: make([]byte, 200_000)}, // compresses
			{Topic: copies, Key: []byte("k"), Value: []byte("small")},
		})
		for i, err := range errs {
			if want := i == 1; errors.Is(err, driver.ErrTooLarge) != want || !want && err != nil {
				t.Errorf("record %d: %v", i, err)
			}
		}
		if n := a.records(t, copies); n != 4 {
			t.Errorf("%d records are there, want 4", n)
		}

		// The limit goes down while the producer runs.
		ten := kadm.AlterConfig{Op: kadm.SetConfig, Name: "max.message.bytes", Value: kadm.StringPtr("10000")}
		if _, err := a.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{ten}, copies); err != nil {
			t.Fatal(err)
		}
		var records []driver.Record
		for range 12 {
			records = append(records, driver.Record{Topic: copies, Key: []byte("k"), Value: noise[:3000]})
		}
		records[5].Value = noise[:12_000]
		for i, err := range p.Produce(t.Context(), records) {
			if want := i == 5; errors.Is(err, driver.ErrTooLarge) != want || !want && err != nil {
				t.Errorf("after the limit went down, record %d: %v", i, err)
			}
		}
	})
}

// A broker that refuses one record refuses the batch that holds it; the others
// are written all the same.
func TestOneBadRecordSpoilsNoOther(t *testing.T) {
	cluster := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "copies"))
	p := newProducer(t, nil, kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ProducerBatchCompression(kgo.NoCompression()))
	ensure(t, p, driver.TopicSpec{Topic: "copies", Like: "orders"})
	cluster.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if !bytes.Contains(kreq.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records, []byte("invalid")) {
			return nil, nil, false
		}
		return refused(kreq.(*kmsg.ProduceRequest), 87), nil, true // INVALID_RECORD
	})
	var records []driver.Record
	for i := range 20 {
		records = append(records, driver.Record{Topic: "copies", Key: []byte("k"), Value: fmt.Appendf(nil, "fine %d", i)})
	}
	records[7].Value = []byte("invalid")
	for i, err := range p.Produce(t.Context(), records) {
		if (err != nil) != (i == 7) || errors.Is(err, driver.ErrTooLarge) {
			t.Errorf("record %d: %v", i, err)
		}
	}
	if n := cluster.PartitionInfo("copies", 0).HighWatermark; n < 19 {
		t.Errorf("%d records are there, want at least 19", n)
	}
}

// The origin's text follows the rule of the keys.
func TestOriginIsACanonicalText(t *testing.T) {
	o := requeue.Origin{Topic: "ord:ers ö", Partition: 3, Offset: 4, LeaderEpoch: -1, TopicID: [16]byte{15: 1}, Timestamp: time.UnixMilli(1_770_000_000_123)}
	parts, err := fence.ParseKey(o.String())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, part := range parts {
		got = append(got, string(part.Value()))
	}
	want := []string{"ord:ers ö", "3", "4", "00000000000000000000000000000001", "-1", "2026-02-02T02:40:00.123Z"}
	if !slices.Equal(got, want) {
		t.Errorf("parts %q, want %q", got, want)
	}
	o.TopicID, o.Timestamp = [16]byte{}, time.Time{}
	if parts, err = fence.ParseKey(o.String()); err != nil || !parts[3].IsNil() || !parts[5].IsNil() {
		t.Errorf("unknown topic id and time: %v, %v", parts, err)
	}
}

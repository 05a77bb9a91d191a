package kafkasource_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/kafkasource"
	"github.com/oncefence/oncefence/test/servers"
)

// transaction is a producer in the middle of one.
func (w *world) transaction(t *testing.T) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(w.brokers...),
		kgo.TransactionalID(name("txn")),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	return client
}

func produceTo(t *testing.T, client *kgo.Client, tp driver.TopicPartition, value string) {
	t.Helper()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: tp.Topic, Partition: tp.Partition, Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func TestTransactions(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		tp, group := of(w.make(t, 1), 0), name("group")
		w.put(t, tp, "0")
		m := w.start(t, group, []string{tp.Topic}, &kafkasource.Options{WatermarkInterval: 100 * time.Millisecond})
		m.gets("0")

		open := w.transaction(t)
		produceTo(t, open, tp, "1")
		w.put(t, tp, "2")
		m.until("watermarks that tell of an open transaction", func() bool {
			return slices.ContainsFunc(m.batches, func(b driver.Batch) bool { return b.HighWatermark == 3 && b.LastStable == 1 })
		})
		m.watch(300 * time.Millisecond)
		m.gets()
		if n := len(m.batches); n > 5 {
			t.Errorf("%d batches while nothing moved: %+v", n, m.batches)
		}
		if err := open.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		m.gets("2")

		produceInTransaction(t, w, tp, "4")
		m.gets("4")
		// The last offset is a marker, which nobody delivers.
		m.until("a next fetch at the end", func() bool {
			b := m.batches[len(m.batches)-1]
			return b.NextFetch == 6 && b.HighWatermark == 6 && b.LastStable == 6
		})
		m.commit(t, tp, 6)
		for i := range m.batches {
			for _, r := range m.batches[i].Records {
				if len(r.Value) != 1 {
					t.Errorf("a marker was delivered: %+v", r)
				}
			}
		}
	})
}

func produceInTransaction(t *testing.T, w *world, tp driver.TopicPartition, value string) {
	t.Helper()
	client := w.transaction(t)
	produceTo(t, client, tp, value)
	if err := client.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
}

// The fake does not keep message.timestamp.type.
func TestAppendTimeIsTold(t *testing.T) {
	w := newWorld(t, servers.Kafka(t).Brokers())
	tp := of(w.make(t, 1, "message.timestamp.type", "LogAppendTime"), 0)
	begin := time.Now().Add(-time.Second)
	err := w.produce(t.Context(), []driver.Record{{Topic: tp.Topic, Value: []byte("v"), Timestamp: begin.Add(-time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	m := w.start(t, name("group"), []string{tp.Topic}, nil)
	m.gets("v")
	r := m.batches[0].Records[0]
	if !r.AppendTime || r.Timestamp.Before(begin) {
		t.Errorf("append time %v, timestamp %v", r.AppendTime, r.Timestamp)
	}
}

func TestRetentionIsTold(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		hour := w.make(t, 1, "retention.ms", "3600000")
		week := w.make(t, 1, "retention.ms", "604800000")
		endless := w.make(t, 1, "retention.ms", "-1")
		compacted := w.make(t, 1, "cleanup.policy", "compact")
		both := w.make(t, 1, "cleanup.policy", "compact,delete", "retention.ms", "60000")
		for _, c := range []struct {
			topics []string
			want   time.Duration
		}{
			{[]string{hour}, time.Hour},
			{[]string{hour, week}, 7 * 24 * time.Hour},
			{[]string{hour, endless}, -1},
			{[]string{compacted, hour}, -1},
			{[]string{both}, time.Minute},
		} {
			m := w.start(t, name("group"), c.topics, nil)
			if got := m.Info().Retention; got != c.want {
				t.Errorf("%v: retention %v, want %v", c.topics, got, c.want)
			}
			m.close()
		}
	})
}

func TestRetentionThatMayNotBeReadIsNotKnown(t *testing.T) {
	cluster := fake(t)
	w := newWorld(t, cluster.ListenAddrs())
	topic := w.make(t, 1)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	m := w.start(t, name("group"), []string{topic}, nil)
	if got := m.Info().Retention; got != 0 {
		t.Errorf("retention %v, want 0", got)
	}
}

func TestPartitionErrorDoesNotStopTheOthersAndIsNotAskedForInALoop(t *testing.T) {
	cluster := fake(t)
	w := newWorld(t, cluster.ListenAddrs())
	good, bad, group := w.make(t, 1), w.make(t, 1), name("group")
	fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: bad, Err: kerr.TopicAuthorizationFailed, Count: -1})
	w.put(t, of(bad, 0), "bad")
	m := w.start(t, group, []string{good, bad}, nil)
	m.until("the partition's error", func() bool { return len(m.errs) > 0 })
	if !errors.Is(m.errs[0], kerr.TopicAuthorizationFailed) || m.pollErr != nil {
		t.Errorf("batch error %v, poll error %v", m.errs[0], m.pollErr)
	}
	w.put(t, of(good, 0), "good")
	m.gets("good")
	m.watch(500 * time.Millisecond)
	if n := fault.Hits(); n > 5 {
		t.Errorf("the partition was fetched %d times within half a second", n)
	}
	// A resume by the loop does not shorten the wait.
	m.Pause([]driver.TopicPartition{of(bad, 0)})
	m.Resume([]driver.TopicPartition{of(bad, 0)})
	fault.Remove()
	m.gets("bad")
}

// A fenced epoch has the client ask where the log parted from what it read.
func TestTruncation(t *testing.T) {
	for _, c := range []struct {
		reset  kafkasource.Position
		values []string
	}{
		{kafkasource.Default, nil},
		{kafkasource.Earliest, []string{"1", "2", "3"}},
		{kafkasource.Latest, []string{"1", "2", "3"}},
	} {
		cluster := fake(t)
		w := newWorld(t, cluster.ListenAddrs())
		tp, group := of(w.make(t, 1), 0), name("group")
		w.put(t, tp, "0", "1", "2")
		m := w.start(t, group, []string{tp.Topic}, &kafkasource.Options{OnReset: c.reset})
		m.gets("0", "1", "2")
		m.commit(t, tp, 3)
		cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(req kmsg.Request) (kmsg.Response, error, bool) {
			return cutAt(req.(*kmsg.OffsetForLeaderEpochRequest), 1), nil, true
		})
		fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: tp.Topic, Err: kerr.FencedLeaderEpoch})
		w.put(t, tp, "3")
		m.until("a reset error", func() bool { return len(m.errs) > 0 })
		if fault.Hits() != 1 {
			t.Errorf("%d fenced fetches", fault.Hits())
		}
		var e *kafkasource.ResetError
		if !errors.As(m.errs[0], &e) || e.Position != 3 || (e.To == 1) != (c.values != nil) {
			t.Fatalf("reset %d: %v, want a ResetError from 3", c.reset, m.errs[0])
		}
		m.values = nil
		if c.values == nil {
			m.watch(1300 * time.Millisecond) // it says so again and delivers nothing
			m.gets()
			if len(m.errs) < 2 {
				t.Errorf("errors %v, want the same again", m.errs)
			}
			continue
		}
		m.gets(c.values...)
		if got := w.position(t, group, tp); got != 1 {
			t.Errorf("reset %d: position %d, want 1", c.reset, got)
		}
		if want := []string{"assigned 0", "lost 0", "assigned 0"}; !slices.Equal(m.calls, want) {
			t.Errorf("calls %q, want %q", m.calls, want)
		}
	}
}

// cutAt answers that the epoch ended at an offset.
func cutAt(req *kmsg.OffsetForLeaderEpochRequest, end int64) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, t := range req.Topics {
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			part := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			part.Partition, part.LeaderEpoch, part.EndOffset = p.Partition, p.LeaderEpoch, end
			out.Partitions = append(out.Partitions, part)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

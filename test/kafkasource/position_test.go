package kafkasource_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/kafkasource"
	"github.com/oncefence/oncefence/test/servers"
)

// onBoth runs a test on the fake and on a real Kafka.
func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("fake", func(t *testing.T) { test(t, newWorld(t, fake(t).ListenAddrs())) })
	t.Run("kafka", func(t *testing.T) { test(t, newWorld(t, servers.Kafka(t).Brokers())) })
}

func TestAdoptionAtTheEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		topic, extra, group := w.make(t, 2), w.make(t, 1), name("group")
		w.put(t, of(topic, 0), "old", "old")
		w.put(t, of(extra, 0), "copy")
		opts := &kafkasource.Options{Start: kafkasource.Latest}
		m := w.open(t, group, []string{topic}, opts)
		if err := m.Start(t.Context(), []driver.Subscription{{Topic: extra}}, m); err != nil {
			t.Fatal(err)
		}
		m.gets("copy") // an extra subscription begins at the beginning
		m.holds(3)
		for p, want := range []int64{2, 0} {
			if got := w.position(t, group, of(topic, int32(p))); got != want {
				t.Errorf("partition %d: first position %d, want %d", p, got, want)
			}
		}
		w.put(t, of(topic, 0), "new")
		m.gets("new")

		// A partition that is added while the member runs begins at the beginning.
		if err := w.grow(t, topic, 3); err != nil {
			t.Fatal(err)
		}
		newWorld(t, w.brokers).put(t, of(topic, 2), "first of a new partition")
		m.gets("first of a new partition")
		m.close()

		// So does one that was added while it was away.
		if err := w.grow(t, topic, 4); err != nil {
			t.Fatal(err)
		}
		newWorld(t, w.brokers).put(t, of(topic, 3), "first of another")
		m = w.start(t, group, []string{topic}, opts)
		m.until("the new partition's record", func() bool { return slices.Contains(m.values, "first of another") })
		if slices.Contains(m.values, "old") {
			t.Errorf("delivered %q, what was there before the adoption", m.values)
		}
		m.holds(4)
		if a := m.held[of(topic, 3)]; a.Partitions != 4 || a.Committed != -1 {
			t.Errorf("the new partition's assignment is %+v", a)
		}
	})
}

func (w *world) grow(t *testing.T, topic string, partitions int) error {
	resp, err := w.admin.UpdatePartitions(t.Context(), partitions, topic)
	if err == nil {
		err = resp.Error()
	}
	for err == nil {
		var details kadm.TopicDetails
		details, err = w.admin.ListTopics(t.Context(), topic)
		if err == nil && len(details[topic].Partitions) == partitions {
			return nil
		}
		if err == nil {
			err = wait(t.Context(), 10*time.Millisecond)
		}
	}
	return err
}

// trim removes records as retention does.
func (w *world) trim(t *testing.T, tp driver.TopicPartition, to int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(tp.Topic, tp.Partition, to, -1)
	resp, err := w.admin.DeleteRecords(t.Context(), offsets)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestPositionIsGoneAtStart(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			reset  kafkasource.Position
			to     int64
			values []string
		}{
			{kafkasource.Default, -1, nil},
			{kafkasource.Earliest, 4, []string{"4", "5"}},
			{kafkasource.Latest, 6, nil},
		} {
			tp, group := of(w.make(t, 1), 0), name("group")
			w.put(t, tp, "0", "1", "2", "3", "4", "5")
			m := w.start(t, group, []string{tp.Topic}, nil)
			m.gets("0", "1", "2", "3", "4", "5")
			m.commit(t, tp, 2)
			m.close()
			w.trim(t, tp, 4)

			m = w.start(t, group, []string{tp.Topic}, &kafkasource.Options{OnReset: c.reset})
			m.until("a reset error", func() bool { return len(m.errs) > 0 })
			var e *kafkasource.ResetError
			if !errors.As(m.errs[0], &e) || e.Position != 2 || e.Start != 4 || e.End != 6 || e.To != c.to {
				t.Fatalf("reset %d: %v, want a ResetError from 2 in [4, 6] to %d", c.reset, m.errs[0], c.to)
			}
			if c.to < 0 {
				// It stands still, and says so again: a second later.
				m.until("the error again", func() bool { return len(m.errs) > 1 })
				w.put(t, tp, "6")
				m.watch(300 * time.Millisecond)
				m.gets()
				if got := w.position(t, group, tp); got != 2 {
					t.Errorf("the position moved to %d", got)
				}
				continue
			}
			if got := w.position(t, group, tp); got != c.to {
				t.Errorf("reset %d: the position is %d, want %d", c.reset, got, c.to)
			}
			w.put(t, tp, "6")
			m.gets(append(c.values, "6")...)
			if want := []string{"assigned 0", "lost 0", "assigned 0"}; !slices.Equal(m.calls, want) {
				t.Errorf("calls %q, want %q", m.calls, want)
			}
			if b := m.batches[len(m.batches)-1]; b.Generation != m.held[tp].Generation {
				t.Errorf("records after the reset have generation %d, the assignment %d", b.Generation, m.held[tp].Generation)
			}
		}
	})
}

func TestPositionIsTakenAwayMeanwhile(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		tp, group := of(w.make(t, 1), 0), name("group")
		w.put(t, tp, "0", "1")
		m := w.start(t, group, []string{tp.Topic}, &kafkasource.Options{OnReset: kafkasource.Earliest})
		m.gets("0", "1")
		m.Pause([]driver.TopicPartition{tp})
		m.watch(600 * time.Millisecond) // a fetch that is under way ends
		w.put(t, tp, "2", "3", "4")
		w.trim(t, tp, 4)
		m.Resume([]driver.TopicPartition{tp})
		m.gets("4")
		if len(m.errs) != 1 {
			t.Errorf("errors %v, want one", m.errs)
		}
	})
}

func TestRecreatedTopic(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		tp, group := of(w.make(t, 1), 0), name("group")
		w.put(t, tp, "0", "1", "2")
		m := w.start(t, group, []string{tp.Topic}, nil)
		m.gets("0", "1", "2")
		m.commit(t, tp, 2)
		before := m.held[tp]
		if _, err := w.admin.DeleteTopic(t.Context(), tp.Topic); err != nil {
			t.Fatal(err)
		}
		again := newWorld(t, w.brokers) // a client that knows nothing of the old one
		for {
			_, err := again.admin.CreateTopic(t.Context(), 1, 1, nil, tp.Topic)
			if err == nil {
				break
			}
			if !errors.Is(err, kerr.TopicAlreadyExists) || wait(t.Context(), 10*time.Millisecond) != nil {
				t.Fatal(err)
			}
		}
		again.put(t, tp, "new 0", "new 1", "new 2")
		m.until("an error that tells", func() bool {
			return slices.ContainsFunc(m.errs, func(err error) bool { return strings.Contains(err.Error(), "deleted") })
		})
		m.gets()
		errs := m.Commit(t.Context(), []driver.Offset{{TopicPartition: tp, Offset: 3, LeaderEpoch: -1}})
		if errs[0] == nil {
			t.Error("a position in the old topic was committed")
		}
		m.close()

		m = w.start(t, group, []string{tp.Topic}, nil)
		m.gets("new 0", "new 1", "new 2")
		if after := m.held[tp]; after.TopicID == before.TopicID || after.Committed != -1 {
			t.Errorf("the new topic's assignment is %+v", after)
		}
	})
}

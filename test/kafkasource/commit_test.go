package kafkasource_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
)

func TestEachPartitionOfACommitHasItsOwnError(t *testing.T) {
	cluster := fake(t)
	w := newWorld(t, cluster.ListenAddrs())
	topic, group := w.make(t, 4), name("group")
	m := w.start(t, group, []string{topic}, nil)
	m.holds(4)
	cluster.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: topic, Partitions: []int32{1}, Err: kerr.RebalanceInProgress},
		kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: topic, Partitions: []int32{2}, Err: kerr.OffsetMetadataTooLarge},
	)
	var offsets []driver.Offset
	for p := range int32(4) {
		offsets = append(offsets, driver.Offset{TopicPartition: of(topic, p), Offset: 7, LeaderEpoch: -1, Metadata: "m"})
	}
	errs := m.Commit(t.Context(), offsets)
	for p, want := range []error{nil, kerr.RebalanceInProgress, kerr.OffsetMetadataTooLarge, nil} {
		if !errors.Is(errs[p], want) || errors.Is(errs[p], driver.ErrNotOwned) {
			t.Errorf("partition %d: %v, want %v and not ErrNotOwned", p, errs[p], want)
		}
	}
	for p, want := range []int64{7, 0, 0, 7} {
		if got := w.position(t, group, of(topic, int32(p))); got != want {
			t.Errorf("partition %d: position %d, want %d", p, got, want)
		}
	}
	if errs := m.Commit(t.Context(), offsets[1:3]); errs[0] != nil || errs[1] != nil {
		t.Errorf("commit again: %v", errs)
	}
}

func TestCommitOfAMemberThatIsGone(t *testing.T) {
	cluster := fake(t)
	w := newWorld(t, cluster.ListenAddrs())
	for _, refused := range []*kerr.Error{kerr.IllegalGeneration, kerr.UnknownMemberID} {
		topic, group := w.make(t, 1), name("group")
		// Heartbeats are too rare to learn it from.
		m := w.start(t, group, []string{topic}, nil, kgo.HeartbeatInterval(session-time.Millisecond))
		m.holds(1)
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: group, Err: refused})
		errs := m.Commit(t.Context(), []driver.Offset{{TopicPartition: of(topic, 0), Offset: 1, LeaderEpoch: -1}})
		if !errors.Is(errs[0], driver.ErrNotOwned) || !errors.Is(errs[0], refused) {
			t.Errorf("%v: commit says %v, want ErrNotOwned", refused, errs[0])
		}
		m.close()
	}
}

func TestCommitGivesUpWithItsContext(t *testing.T) {
	cluster := fake(t)
	w := newWorld(t, cluster.ListenAddrs())
	topic, group := w.make(t, 1), name("group")
	m := w.start(t, group, []string{topic}, nil)
	m.holds(1)
	release := make(chan struct{})
	cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.SleepControl(func() { <-release })
		return nil, nil, false
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	errs := m.Commit(ctx, []driver.Offset{{TopicPartition: of(topic, 0), Offset: 1, LeaderEpoch: -1}})
	if !errors.Is(errs[0], context.DeadlineExceeded) || time.Since(begin) > patience/2 {
		t.Errorf("commit says %v after %v", errs[0], time.Since(begin))
	}
	close(release) // it is unknown whether that one takes effect: the next one is absolute
	m.commit(t, of(topic, 0), 2)
	if got := w.position(t, group, of(topic, 0)); got != 2 {
		t.Errorf("position %d, want 2", got)
	}
}

// A commit on its way when its partition moves must not be sent under the next
// generation of the group.
func TestCommitOnItsWayDoesNotOutliveItsAssignment(t *testing.T) {
	cluster := fake(t)
	w := newWorld(t, cluster.ListenAddrs())
	topic, group := w.make(t, 2), name("group")
	one := w.start(t, group, []string{topic}, nil)
	one.holds(2)
	stuck, release := make(chan struct{}), make(chan struct{})
	cluster.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		close(stuck)
		cluster.SleepControl(func() { <-release })
		return nil, nil, false
	})
	answered := make(chan []error, 1)
	go func() {
		answered <- one.Commit(context.Background(), []driver.Offset{
			{TopicPartition: of(topic, 0), Offset: 1, LeaderEpoch: -1},
			{TopicPartition: of(topic, 1), Offset: 1, LeaderEpoch: -1},
		})
	}()
	<-stuck
	two := w.start(t, group, []string{topic}, nil)
	one.holds(1)
	select {
	case errs := <-answered:
		if errs[0] == nil || errs[1] == nil {
			t.Errorf("a commit that was not answered says %v", errs)
		}
	case <-time.After(patience):
		t.Error("the commit outlived the assignment")
	}
	close(release)
	two.holds(1)
}

func TestFirstPositionThatCannotBeCommitted(t *testing.T) {
	cluster := fake(t)
	w := newWorld(t, cluster.ListenAddrs())
	topic, group := w.make(t, 1), name("group")
	w.put(t, of(topic, 0), "0")
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: topic, Err: kerr.UnknownServerError, Count: 2})
	m := w.start(t, group, []string{topic}, nil)
	m.until("an error of the first commit", func() bool { return m.pollErr != nil })
	m.mu.Lock()
	if !slices.Equal(m.calls, nil) || len(m.values) > 0 {
		t.Errorf("the handler was called %q and given %q without a position", m.calls, m.values)
	}
	m.mu.Unlock()
	m.gets("0")
}

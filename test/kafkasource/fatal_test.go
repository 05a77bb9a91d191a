package kafkasource_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/kafkasource"
)

func TestTwinFencesTheOlderForGood(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		topic, group := w.make(t, 1), name("group")
		opts := &kafkasource.Options{InstanceID: "twin"}
		older := w.start(t, group, []string{topic}, opts)
		older.holds(1)
		newer := w.start(t, group, []string{topic}, opts)
		newer.holds(1)
		older.until("a fatal error", func() bool { return older.pollErr != nil })
		if err := older.pollErr; !errors.Is(err, driver.ErrFatal) || !errors.Is(err, kerr.FencedInstanceID) || !strings.Contains(err.Error(), "instance id") {
			t.Errorf("poll says %v", err)
		}
		// It stays fatal, and the newer one is not fenced in turn.
		older.pollErr = nil
		older.watch(50 * time.Millisecond)
		if !errors.Is(older.pollErr, driver.ErrFatal) {
			t.Errorf("poll again says %v", older.pollErr)
		}
		if want := []string{"assigned 0", "lost 0"}; !slices.Equal(older.calls, want) {
			t.Errorf("calls of the older %q, want %q", older.calls, want)
		}
		errs := older.Commit(t.Context(), []driver.Offset{{TopicPartition: of(topic, 0), Offset: 0, LeaderEpoch: -1}})
		if !errors.Is(errs[0], driver.ErrNotOwned) {
			t.Errorf("commit of the older says %v", errs[0])
		}
		w.put(t, of(topic, 0), "v")
		newer.gets("v")
		newer.watch(time.Second)
		if want := []string{"assigned 0"}; !slices.Equal(newer.calls, want) || newer.pollErr != nil {
			t.Errorf("calls of the newer %q, want %q; poll says %v", newer.calls, want, newer.pollErr)
		}
	})
}

func TestGroupErrorsThatEndTheMember(t *testing.T) {
	cluster := fake(t)
	w := newWorld(t, cluster.ListenAddrs())
	for _, c := range []struct {
		err   *kerr.Error
		fatal bool
		words string
	}{
		{kerr.GroupAuthorizationFailed, true, "READ on the group"},
		{kerr.InconsistentGroupProtocol, true, "another protocol"},
		{kerr.InvalidSessionTimeout, true, "session.timeout"},
		{kerr.GroupMaxSizeReached, false, "max size"},
		{kerr.UnknownServerError, false, ""},
	} {
		topic, group := w.make(t, 1), name("group")
		fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Group: group, Err: c.err, TopLevel: true, Count: -1})
		m := w.start(t, group, []string{topic}, nil)
		m.until("an error", func() bool { return m.pollErr != nil })
		if got := errors.Is(m.pollErr, driver.ErrFatal); got != c.fatal || !errors.Is(m.pollErr, c.err) {
			t.Errorf("%v: poll says %v, want fatal: %v", c.err, m.pollErr, c.fatal)
		}
		if c.fatal && !strings.Contains(m.pollErr.Error(), c.words) {
			t.Errorf("%v: %v does not say %q", c.err, m.pollErr, c.words)
		}
		fault.Remove()
		if !c.fatal {
			m.holds(1)
		}
		m.close()
	}
}

func TestStaticMemberComesBackToItsPartitions(t *testing.T) {
	for _, nextGen := range []bool{false, true} {
		onBoth(t, func(t *testing.T, w *world) {
			topic, group := w.make(t, 2), name("group")
			open := func(instance string) *member {
				return w.start(t, group, []string{topic}, &kafkasource.Options{InstanceID: instance, NextGenProtocol: nextGen},
					kgo.SessionTimeout(6*time.Second))
			}
			one, two := open("one"), open("two")
			one.until("both have one", func() bool {
				two.pollFor(time.Millisecond)
				two.mu.Lock()
				defer two.mu.Unlock()
				return len(one.held) == 1 && len(two.held) == 1
			})
			one.close()
			two.calls = nil
			begin := time.Now()
			back := open("one")
			back.holds(1)
			took := time.Since(begin)
			two.watch(200 * time.Millisecond)
			if len(two.calls) > 0 {
				t.Errorf("the other member's calls %q, want none", two.calls)
			}
			if took > 3*time.Second {
				t.Errorf("the member was back after %v", took)
			}
			t.Logf("%s: back after %v", back.Info().Protocol, took)
		})
	}
}

func TestFallbackToClassicIsTold(t *testing.T) {
	cluster := fake(t)
	w := newWorld(t, cluster.ListenAddrs())
	topic, group := w.make(t, 1), name("group")
	cluster.ControlKey(int16(kmsg.ConsumerGroupHeartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
		resp.ErrorCode = kerr.UnsupportedVersion.Code
		return resp, nil, true
	})
	m := w.open(t, group, []string{topic}, &kafkasource.Options{NextGenProtocol: true})
	if got := m.Info().Protocol; got != "" {
		t.Errorf("protocol before start: %q", got)
	}
	if err := m.Start(t.Context(), nil, m); err != nil {
		t.Fatal(err)
	}
	m.holds(1)
	if got := m.Info().Protocol; got != "classic (cooperative-sticky)" {
		t.Errorf("protocol after the fallback: %q", got)
	}
}

package kafkasource_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/kafkasource"
)

// closes closes with a context of half a second and says how long it took.
func (m *member) closes() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := m.Close(ctx)
	return time.Since(begin), err
}

func TestCloseIsBounded(t *testing.T) {
	for what, prepare := range map[string]func(t *testing.T, cluster *kfake.Cluster, s *silence, m *member){
		"the handler does not heed its context": func(t *testing.T, _ *kfake.Cluster, _ *silence, m *member) {
			release := make(chan struct{})
			m.onRevoked = func(context.Context, []driver.TopicPartition) { <-release }
			t.Cleanup(func() { close(release) })
			m.holds(1)
		},
		"the brokers are gone": func(_ *testing.T, cluster *kfake.Cluster, _ *silence, m *member) {
			m.holds(1)
			cluster.Close()
		},
		"the brokers do not answer": func(_ *testing.T, _ *kfake.Cluster, s *silence, m *member) {
			m.holds(1)
			s.begun.Store(true)
		},
		"joining hangs": func(_ *testing.T, _ *kfake.Cluster, s *silence, m *member) {
			s.begun.Store(true)
			m.pollFor(200 * time.Millisecond)
		},
		"a poll is under way": func(t *testing.T, _ *kfake.Cluster, _ *silence, m *member) {
			m.holds(1)
			polled := make(chan error)
			go func() {
				_, err := m.Poll(context.Background(), 1)
				polled <- err
			}()
			t.Cleanup(func() {
				if err := <-polled; !errors.Is(err, driver.ErrClosed) {
					t.Errorf("poll says %v", err)
				}
			})
		},
	} {
		for _, nextGen := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				before := runtime.NumGoroutine()
				t.Run("", func(t *testing.T) {
					cluster := fake(t)
					w := newWorld(t, cluster.ListenAddrs())
					topic := w.make(t, 1)
					s := &silence{}
					m := w.start(t, name("group"), []string{topic}, &kafkasource.Options{NextGenProtocol: nextGen}, kgo.Dialer(s.dial))
					prepare(t, cluster, s, m)
					took, err := m.closes()
					if took > 2*time.Second {
						t.Errorf("close took %v and says %v", took, err)
					}
					if _, err := m.Poll(t.Context(), 1); !errors.Is(err, driver.ErrClosed) {
						t.Errorf("poll after close says %v", err)
					}
				})
				deadline := time.Now().Add(patience)
				for runtime.NumGoroutine() > before {
					if time.Now().After(deadline) {
						buf := make([]byte, 1<<16)
						t.Fatalf("%d goroutines, there were %d:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
					}
					runtime.Gosched()
				}
			})
		}
	}
}

// silence is a network on which answers get lost from some moment on.
type silence struct{ begun atomic.Bool }

func (s *silence) dial(ctx context.Context, network, host string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, host)
	return &silentConn{conn, s}, err
}

type silentConn struct {
	net.Conn
	silence *silence
}

func (c *silentConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.silence.begun.Load() {
			return n, err
		}
	}
}

func TestStartWithoutBrokers(t *testing.T) {
	// A port where nobody listens.
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close()
	w := &world{brokers: []string{addr}}
	m := w.open(t, "group", []string{"topic"}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err = m.Start(ctx, nil, m)
	if err == nil || !strings.Contains(err.Error(), "group group") || time.Since(begin) > 5*time.Second {
		t.Errorf("start says %v after %v", err, time.Since(begin))
	}
	if _, err := m.Poll(t.Context(), 1); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("poll says %v", err)
	}
}

func TestStartWithoutRights(t *testing.T) {
	cluster := fake(t)
	w := newWorld(t, cluster.ListenAddrs())
	topic := w.make(t, 1)
	for key, words := range map[kmsg.Key]string{
		kmsg.Metadata:    topic,
		kmsg.OffsetFetch: "committed positions",
	} {
		group := name("group")
		fault := kfake.Fault{Keys: []kmsg.Key{key}, Group: group, Count: -1}
		if key == kmsg.Metadata {
			fault.Topic, fault.Group = topic, ""
		}
		handle := cluster.Fault(fault)
		m := w.open(t, group, []string{topic}, nil, kgo.RequestRetries(1))
		err := m.Start(t.Context(), nil, m)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v: start says %v, want %q", key, err, words)
		}
		handle.Remove()
	}
}

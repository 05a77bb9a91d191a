// Package kafkarequeue_test holds the tests of requeue/kafkarequeue: on an
// embedded broker that can be made to fail, and on a real one.
package kafkarequeue_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/requeue/kafkarequeue"
	"github.com/oncefence/oncefence/test/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// names makes topic names that no other test uses, real clusters being shared.
var names atomic.Int64

func unique(stem string) string {
	return fmt.Sprintf("%s-%d-%d", stem, time.Now().UnixNano(), names.Add(1))
}

// fake starts an embedded cluster.
func fake(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

// both runs a test on an embedded cluster and on a real one.
func both(t *testing.T, test func(t *testing.T, brokers []string)) {
	t.Run("embedded", func(t *testing.T) { test(t, fake(t, kfake.NumBrokers(1)).ListenAddrs()) })
	t.Run("real", func(t *testing.T) { test(t, servers.Kafka(t).Brokers()) })
}

// quiet is for logs that no test looks at.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// newProducer makes a producer that is closed at the end of the test.
func newProducer(t testing.TB, opts *kafkarequeue.Options, kopts ...kgo.Opt) driver.Producer {
	t.Helper()
	if opts == nil {
		opts = &kafkarequeue.Options{Log: quiet}
	}
	p, err := kafkarequeue.New(opts, kopts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}

func ensure(t testing.TB, p driver.Producer, specs ...driver.TopicSpec) {
	t.Helper()
	if err := p.Ensure(t.Context(), specs); err != nil {
		t.Fatal(err)
	}
}

// wantErrors fails unless the error holds all of the texts; none means no error.
func wantErrors(t testing.TB, name string, err error, texts ...string) {
	t.Helper()
	if len(texts) == 0 && err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v\nwant %q in it", name, err, text)
		}
	}
}

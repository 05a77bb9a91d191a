package kafkarequeue_test

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/requeue/kafkarequeue"
)

// bubble is a cluster, without a real network, and a producer that has accepted
// the topic "copies"; delivery takes 5 s at most. It runs in synctest's time.
func bubble(t *testing.T, partitions int32, test func(t *testing.T, cluster *kfake.Cluster, p driver.Producer)) {
	synctest.Test(t, func(t *testing.T) {
		var net kfake.VirtualNetwork
		cluster := fake(t, kfake.NumBrokers(1), kfake.Ports(9092), kfake.ListenFn(net.Listen), kfake.SeedTopics(partitions, "orders", "copies"))
		p, err := kafkarequeue.New(&kafkarequeue.Options{DeliveryTimeout: 5 * time.Second, Log: quiet}, kgo.SeedBrokers("localhost:9092"), kgo.Dialer(net.DialContext))
		if err != nil {
			t.Fatal(err)
		}
		ensure(t, p, driver.TopicSpec{Topic: "copies", Like: "orders"})
		test(t, cluster, p)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
		cluster.Close()
	})
}

// silence makes the broker take produce requests and say nothing, until the
// returned function is called; held tells of each request.
func silence(cluster *kfake.Cluster) (held <-chan struct{}, end func()) {
	requests, over := make(chan struct{}, 100), make(chan struct{})
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		select {
		case <-over:
			return nil, nil, false
		default:
		}
		cluster.KeepControl()
		requests <- struct{}{}
		cluster.SleepControl(func() { <-over })
		return nil, nil, false
	})
	return requests, sync.OnceFunc(func() { close(over) })
}

func copiesOf(values ...string) []driver.Record {
	var records []driver.Record
	for _, value := range values {
		records = append(records, driver.Record{Topic: "copies", Key: []byte("k"), Value: []byte(value)})
	}
	return records
}

func TestABrokerThatIsCutOffIsAnsweredInTime(t *testing.T) {
	bubble(t, 1, func(t *testing.T, cluster *kfake.Cluster, p driver.Producer) {
		_, end := silence(cluster)
		start := time.Now()
		errs := p.Produce(t.Context(), copiesOf("1", "2"))
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("Produce took %v, want at most 5s", took)
		}
		for i, err := range errs {
			if err == nil || errors.Is(err, driver.ErrTooLarge) || !strings.Contains(err.Error(), "topic copies") {
				t.Errorf("record %d: %v, want an error that names the topic", i, err)
			}
		}
		// The broker comes back: what is produced again gets through.
		end()
		deadline := time.Now().Add(2 * time.Minute)
		for {
			errs := p.Produce(t.Context(), copiesOf("1", "2"))
			if errs[0] == nil && errs[1] == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("two minutes after the broker came back: %v", errs)
			}
		}
	})
}

func TestProduceEndsWithItsContext(t *testing.T) {
	bubble(t, 1, func(t *testing.T, cluster *kfake.Cluster, p driver.Producer) {
		held, end := silence(cluster)
		defer end()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-held
			cancel()
		}()
		start := time.Now()
		if err := p.Produce(ctx, copiesOf("1"))[0]; err == nil {
			t.Error("acknowledged by a silent broker")
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("Produce went on for %v after its context", took)
		}
		before := time.Now()
		if err := p.Produce(ctx, copiesOf("1"))[0]; err == nil || time.Since(before) > time.Second {
			t.Errorf("with an ended context: %v after %v", err, time.Since(before))
		}
	})
}

// A record that is large goes by a lane of its own, which must not hang either.
func TestTheLaneForLargeRecordsEndsInTimeToo(t *testing.T) {
	bubble(t, 1, func(t *testing.T, cluster *kfake.Cluster, p driver.Producer) {
		_, end := silence(cluster)
		large := copiesOf("", "")
		large[0].Value, large[1].Value = make([]byte, 2<<20), make([]byte, 2<<20)
		for range 2 {
			start := time.Now()
			for i, err := range p.Produce(t.Context(), large) {
				if err == nil || errors.Is(err, driver.ErrTooLarge) {
					t.Errorf("record %d: %v", i, err)
				}
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("Produce took %v, want at most 5s", took)
			}
		}
		end()
		deadline := time.Now().Add(2 * time.Minute)
		for p.Produce(t.Context(), large[:1])[0] != nil {
			if time.Now().After(deadline) {
				t.Fatal("the lane did not come back within two minutes")
			}
		}
	})
}

// One caller gives up; franz-go then fails all records that wait for the same
// partition. Those of another caller are sent again.
func TestACallerThatGivesUpSpoilsNoOther(t *testing.T) {
	bubble(t, 1, func(t *testing.T, cluster *kfake.Cluster, p driver.Producer) {
		held, over := make(chan struct{}), make(chan struct{})
		cluster.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			close(held)
			cluster.SleepControl(func() { <-over })
			return refused(kreq.(*kmsg.ProduceRequest), kerr.NotEnoughReplicas.Code), nil, true // may be sent again
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := p.Produce(ctx, copiesOf("given up"))[0]; err == nil {
				t.Error("acknowledged by a silent broker")
			}
		})
		<-held
		wg.Go(func() {
			if err := p.Produce(t.Context(), copiesOf("wanted"))[0]; err != nil {
				t.Errorf("the other caller's record: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(over)
		wg.Wait()
		if n := cluster.PartitionInfo("copies", 0).HighWatermark; n != 1 {
			t.Errorf("%d records are there, want the one that was wanted", n)
		}
	})
}

func TestClose(t *testing.T) {
	bubble(t, 1, func(t *testing.T, cluster *kfake.Cluster, p driver.Producer) {
		held, end := silence(cluster)
		defer end()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := p.Produce(t.Context(), copiesOf("1"))[0]; !errors.Is(err, driver.ErrClosed) {
				t.Errorf("a record in flight at Close: %v, want driver.ErrClosed", err)
			}
		})
		<-held
		start := time.Now()
		for range 2 {
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		wg.Wait()
		large := copiesOf("after", "after, and large")
		large[1].Value = make([]byte, 2<<20)
		for i, err := range p.Produce(t.Context(), large) {
			if !errors.Is(err, driver.ErrClosed) {
				t.Errorf("record %d after Close: %v, want driver.ErrClosed", i, err)
			}
		}
	})
}

func TestATopicThatWasDeletedIsAnError(t *testing.T) {
	bubble(t, 1, func(t *testing.T, cluster *kfake.Cluster, p driver.Producer) {
		if err := cluster.DeleteTopic("copies"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := p.Produce(t.Context(), copiesOf("1"))[0]; err == nil {
			t.Error("acknowledged without a topic")
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("Produce took %v, want at most 5s", took)
		}
		if cluster.TopicInfo("copies") != nil {
			t.Error("the topic was made by producing to it")
		}
	})
}

// silentListener accepts connections and never says a word.
func silentListener(t *testing.T) string {
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := func(c io.Closer) func() {
		return func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(closed(l))
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(closed(c))
		}
	}()
	return l.Addr().String()
}

func TestEnsureAndCloseEndWithASilentBroker(t *testing.T) {
	base := runtime.NumGoroutine()
	p, err := kafkarequeue.New(&kafkarequeue.Options{Log: quiet}, kgo.SeedBrokers(silentListener(t)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	err = p.Ensure(ctx, []driver.TopicSpec{{Topic: "a", Like: "b"}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Ensure: %v, want its context's error", err)
	}
	closing, cancelClosing := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancelClosing()
	if err := p.Close(closing); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("both took %v", took)
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > base+2; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), base)
		}
	}
}

package size

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence/redisfence"
	"github.com/oncefence/oncefence/test/servers"
)

// maxRoundTrips is how many round trips to the store 1,000 records may cost,
// claim and seal together, at batchSize.
const (
	maxRoundTrips = 20
	batchSize     = 500
)

// flushes is a hook that counts what goes to Redis: a command by itself and a
// pipeline are one round trip each.
type flushes struct{ n, commands atomic.Int64 }

func (f *flushes) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (f *flushes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		f.n.Add(1)
		f.commands.Add(1)
		return next(ctx, cmd)
	}
}

func (f *flushes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		f.n.Add(1)
		f.commands.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// The whole loop over a real Redis with an effect that does nothing. Everything
// that goes over the client is counted: what is neither claim nor seal (the
// server's settings, the namespace's marker) comes on top.
func TestRoundTrips(t *testing.T) {
	const records, partitions = 20_000, 6
	opts, err := redis.ParseURL(servers.Redis(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	count := &flushes{}
	client.AddHook(count)
	store, err := redisfence.NewStore(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })

	broker := memsource.NewBroker(nil)
	if err := broker.CreateTopic(topic, &memsource.TopicOptions{Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	batch := make([]driver.Record, records)
	for i := range batch {
		batch[i] = driver.Record{
			Topic: topic, Key: fmt.Append(nil, "customer-", i%customers), Value: make([]byte, valueSize),
			Headers: []driver.Header{{Key: "idempotency-key", Value: fmt.Append(nil, t.Name(), "-", i)}},
		}
	}
	if _, err := broker.Produce(batch...); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	fresh := fmt.Sprint(group, "-", time.Now().UnixNano()) // the server may be shared
	l := start(t, broker.Source(fresh, []string{topic}, nil), store,
		consumer.Options{BatchSize: batchSize, Producer: broker.Producer(nil), EndlessTopics: true},
		func(ran int64, _ *effect.Input) {
			if ran == records {
				close(done)
			}
		})
	l.wait(t, done)
	l.end(t)
	committed := int64(0)
	for p := range int32(partitions) {
		if offset, ok := broker.Committed(fresh, tp(p)); ok {
			committed += offset.Offset
		}
	}
	if committed != records {
		t.Errorf("%d of %d records are committed", committed, records)
	}
	per := float64(count.n.Load()) * 1000 / records
	t.Logf("%d round trips with %d commands for %d records: %.1f for 1,000", count.n.Load(), count.commands.Load(), records, per)
	if per > maxRoundTrips {
		t.Errorf("%.1f round trips for 1,000 records, at most %d are allowed", per, maxRoundTrips)
	}
}

package pgfence_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/pgfence"
	"github.com/oncefence/oncefence/requeue"
	"github.com/oncefence/oncefence/test/servers"
)

const (
	group = "billing"
	topic = "orders"
)

// world is a broker in memory, and a database with the fence and the table that
// effects write to, which has no unique key: what is applied twice stands twice.
type world struct {
	t      *testing.T
	broker *memsource.Broker
	pool   *pgxpool.Pool
	schema string
	fence  *fence.Fence
	seen   *decisions
}

func newWorld(t *testing.T, partitions int) *world {
	t.Helper()
	w := &world{t: t, broker: memsource.NewBroker(nil), pool: connect(t, servers.Postgres(t).URL()), seen: &decisions{}}
	if err := w.broker.CreateTopic(topic, &memsource.TopicOptions{Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	w.schema = schema(t, w.pool)
	f, err := pgfence.New(w.pool, &pgfence.Options{Schema: w.schema, Fence: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	w.fence = f
	user := pgx.Identifier{w.schema + " user"}.Sanitize()
	exec(t, w.pool, "DROP SCHEMA IF EXISTS "+user+" CASCADE")
	exec(t, w.pool, "CREATE SCHEMA "+user)
	t.Cleanup(func() { _, _ = w.pool.Exec(context.WithoutCancel(t.Context()), "DROP SCHEMA "+user+" CASCADE") })
	exec(t, w.pool, "CREATE TABLE "+w.table("charges")+" (effect_id text NOT NULL, order_id text NOT NULL, attempt int NOT NULL, amount int CHECK (amount <> 13))")
	return w
}

func quiet() *fence.Options {
	return &fence.Options{Logger: slog.New(slog.DiscardHandler)}
}

// table is a table of the user's own schema.
func (w *world) table(name string) string {
	return pgx.Identifier{w.schema + " user"}.Sanitize() + "." + name
}

func (w *world) produce(id, value string) {
	w.t.Helper()
	_, err := w.broker.Produce(driver.Record{Topic: topic, Value: []byte(value), Headers: []driver.Header{{Key: "idempotency-key", Value: []byte(id)}}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// produceKey writes a record with a message key; its id is its payload.
func (w *world) produceKey(key, id string) {
	w.t.Helper()
	_, err := w.broker.Produce(driver.Record{Topic: topic, Key: []byte(key), Value: []byte(id), Headers: []driver.Header{{Key: "idempotency-key", Value: []byte(id)}}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// produceTo writes a record to one partition.
func (w *world) produceTo(partition int32, id, value string) {
	w.t.Helper()
	_, err := w.broker.ProduceTo(driver.TopicPartition{Topic: topic, Partition: partition},
		driver.Record{Value: []byte(value), Headers: []driver.Header{{Key: "idempotency-key", Value: []byte(id)}}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// order is the order in which rows were written.
func (w *world) order() (out string) {
	w.t.Helper()
	err := w.pool.QueryRow(w.t.Context(), "SELECT coalesce(string_agg(order_id, ' ' ORDER BY ctid), '') FROM "+w.table("charges")).Scan(&out)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) options() *consumer.Options {
	return &consumer.Options{
		Producer: w.broker.Producer(nil), Logger: slog.New(slog.DiscardHandler), Observer: w.seen, Scope: fence.ScopeID, EndlessTopics: true,
		Lease: 2 * time.Second, CommitInterval: 20 * time.Millisecond, DrainTimeout: 5 * time.Second,
		Schedule: requeue.Schedule{Delays: []time.Duration{50 * time.Millisecond, 100 * time.Millisecond}, Jitter: -1},
	}
}

// charge writes one row for the record.
func (w *world) charge(ctx context.Context, tx pgx.Tx, in effect.Input) (effect.Receipt, error) {
	_, err := tx.Exec(ctx, "INSERT INTO "+w.table("charges")+" VALUES ($1, $2, $3, $4)", in.EffectID, string(in.Payload), in.Attempt, amount(in))
	return effect.Receipt{EffectID: "charge of " + string(in.Payload), Payload: []byte("paid " + string(in.Payload))}, err
}

// amount is 13, which the table refuses, for payloads that say so.
func amount(in effect.Input) int {
	if string(in.Payload) == "unlucky" {
		return 13
	}
	return 1
}

// start runs a consumer; stop ends it and fails the test on an error.
func (w *world) start(e effect.Effect, opts *consumer.Options) (stop func()) {
	w.t.Helper()
	return w.startOver(w.fence, e, opts)
}

func (w *world) startOver(f *fence.Fence, e effect.Effect, opts *consumer.Options) (stop func()) {
	w.t.Helper()
	c, err := consumer.New(w.broker.Source(group, []string{topic}, nil), f, e, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() {
		err := c.Run(ctx)
		if ctx.Err() == nil {
			w.t.Errorf("Run ended by itself: %v", err)
		}
		ended <- err
	}()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// settled waits until the group has committed all that was produced.
func (w *world) settled() {
	w.t.Helper()
	until(w.t, "everything is settled", func() bool {
		for _, name := range w.broker.Topics() {
			for p := range w.broker.Partitions(name) {
				tp := driver.TopicPartition{Topic: name, Partition: int32(p)}
				end := w.broker.HighWatermark(tp)
				if committed, ok := w.broker.Committed(group, tp); name != topic+"."+group+".dlq" && end > 0 && (!ok || committed.Offset < end) {
					return false
				}
			}
		}
		return true
	})
}

// charges counts the rows by order.
func (w *world) charges() map[string]int {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), "SELECT order_id, count(*)::int FROM "+w.table("charges")+" GROUP BY order_id")
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]int{}
	var order string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&order, &n}, func() error {
		out[order] = n
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) deadLetters() []driver.Record { return w.broker.Records(topic + "." + group + ".dlq") }

func header(r driver.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// decisions counts what a consumer decided.
type decisions struct {
	mu    sync.Mutex
	count map[string]int
	all   []consumer.Decision
}

func (d *decisions) Decided(got consumer.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count == nil {
		d.count = map[string]int{}
	}
	d.count[got.Decision]++
	d.all = append(d.all, got)
}

func (d *decisions) of(decision string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count[decision]
}

func (*decisions) Delivered(int)                     {}
func (*decisions) Ran(string, string, time.Duration) {}
func (*decisions) Gauges(consumer.Gauges)            {}
func (*decisions) Committed(int, int)                {}

var errRefused = errors.New("the provider refused")

// keyOf and namespaceOf are those of the consumers here.
func keyOf(id string) fence.Key {
	return fence.RecordKey(fence.ScopeID, topic, 0, fence.Nil, fence.Text(id))
}

func namespaceOf() string {
	ns, err := fence.NewNamespace(fence.Nil, group)
	if err != nil {
		panic(err)
	}
	return ns.Text()
}

func orders(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("order %d", i)
	}
	return out
}

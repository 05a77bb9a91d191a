package pgfence_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
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
)

// The child is this test binary, started again: a consumer with a broker of its
// own, in which the same records stand each time, so that after a crash all of
// them are delivered again. It kills itself when it comes to a statement.
const (
	childURL    = "PGFENCE_CHILD_URL"
	childSchema = "PGFENCE_CHILD_SCHEMA"
	childTable  = "PGFENCE_CHILD_TABLE"
	childKill   = "PGFENCE_CHILD_KILL" // "start|end N TEXT": at the Nth statement that holds TEXT
	childForm   = "PGFENCE_CHILD_FORM"
	childOrders = 60
)

func TestMain(m *testing.M) {
	if os.Getenv(childURL) != "" {
		if err := child(context.Background()); err != nil { //nolint:forbidigo // a program's own root
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	mainOfTests(m)
}

// killer kills the process at a statement. It is a tracer of pgx.
type killer struct {
	end  bool
	nth  int64
	text string
	met  atomic.Int64
}

func newKiller(words string) *killer {
	when, rest, ok := strings.Cut(words, " ")
	n, text, _ := strings.Cut(rest, " ")
	nth, err := strconv.ParseInt(n, 10, 64)
	if !ok || err != nil {
		return &killer{nth: -1}
	}
	return &killer{end: when == "end", nth: nth, text: text}
}

type atKey struct{}

func (k *killer) meets(sql string) bool { return k.nth > 0 && strings.Contains(sql, k.text) }

func (k *killer) pass(end bool) {
	if end != k.end || k.met.Add(1) != k.nth {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		os.Exit(3)
	}
	select {} // the signal is on its way
}

func (k *killer) started(ctx context.Context, sql string) context.Context {
	if !k.meets(sql) {
		return ctx
	}
	k.pass(false)
	return context.WithValue(ctx, atKey{}, true)
}

func (k *killer) ended(ctx context.Context, err error) {
	if err == nil && ctx.Value(atKey{}) != nil {
		k.pass(true)
	}
}

func (k *killer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return k.started(ctx, data.SQL)
}

func (k *killer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	k.ended(ctx, data.Err)
}

func (k *killer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	var all strings.Builder
	for _, q := range data.Batch.QueuedQueries {
		all.WriteString(q.SQL + ";")
	}
	return k.started(ctx, all.String())
}

func (*killer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (k *killer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	k.ended(ctx, data.Err)
}

// child consumes until all is settled.
func child(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with its parent
		_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
		os.Exit(2)
	}()
	config, err := pgxpool.ParseConfig(os.Getenv(childURL))
	if err != nil {
		return err
	}
	config.MaxConns = 4
	config.ConnConfig.Tracer = newKiller(os.Getenv(childKill))
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	f, err := pgfence.New(pool, &pgfence.Options{Schema: os.Getenv(childSchema), Fence: quiet()})
	if err != nil {
		return err
	}
	broker := memsource.NewBroker(nil)
	if err := broker.CreateTopic(topic, &memsource.TopicOptions{Partitions: 1}); err != nil {
		return err
	}
	if err := childProduce(broker); err != nil {
		return err
	}
	e := effect.Transactional(childCharge, &effect.TransactionalOptions{MaxBatch: 8})
	if os.Getenv(childForm) == "batch" {
		e = effect.TransactionalBatch(childChargeAll, &effect.TransactionalOptions{MaxBatch: 8})
	}
	c, err := consumer.New(broker.Source(group, []string{topic}, nil), f, e, &consumer.Options{
		Producer: broker.Producer(nil), Logger: slog.New(slog.DiscardHandler), Scope: fence.ScopeID, EndlessTopics: true,
		Lease: 300 * time.Millisecond, CommitInterval: 10 * time.Millisecond, Concurrency: 2, InPlace: true,
		Schedule: requeue.Schedule{Delays: []time.Duration{20 * time.Millisecond, 20 * time.Millisecond}, Jitter: -1},
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	tp := driver.TopicPartition{Topic: topic}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if at, ok := broker.Committed(group, tp); ok && at.Offset == broker.HighWatermark(tp) {
			cancel()
			return <-ended
		}
		select {
		case <-tick.C:
		case err := <-ended:
			return fmt.Errorf("it stopped by itself: %w", err)
		}
	}
}

// childProduce writes each order twice, one that succeeds the second time and one
// that never does.
func childProduce(broker *memsource.Broker) error {
	ids := append(orders(childOrders), "second time", "never")
	for range 2 {
		for _, id := range ids {
			r := driver.Record{Topic: topic, Value: []byte(id), Headers: []driver.Header{{Key: "idempotency-key", Value: []byte(os.Getenv(childTable) + id)}}}
			if _, err := broker.Produce(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func childCharge(ctx context.Context, tx pgx.Tx, in effect.Input) (effect.Receipt, error) {
	_, err := tx.Exec(ctx, "INSERT INTO "+os.Getenv(childTable)+" VALUES ($1)", string(in.Payload))
	return effect.Receipt{}, childOutcome(in, err)
}

func childOutcome(in effect.Input, err error) error {
	switch id := string(in.Payload); {
	case err != nil:
		return err
	case id == "second time" && in.Attempt == 1:
		return errRefused
	case id == "never":
		return effect.Permanent(errRefused)
	}
	return nil
}

func childChargeAll(ctx context.Context, tx pgx.Tx, in []effect.Input) []effect.Outcome {
	out := effect.NewOutcomes(in)
	var ids []string
	for i := range in {
		ids = append(ids, string(in[i].Payload))
	}
	_, err := tx.Exec(ctx, "INSERT INTO "+os.Getenv(childTable)+" SELECT unnest($1::text[])", ids)
	for i := range in {
		out[i].Err = childOutcome(in[i], err)
	}
	return out
}

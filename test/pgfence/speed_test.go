package pgfence_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/test/servers"
)

const (
	bulkBatch  = 500
	bulkRounds = 5
	bulkRows   = 20_000 // a round
)

// TestBulkSpeed compares batch ingest through the loop with what one would write
// by hand: bulk inserts into a table with a unique key, duplicates ignored. Both
// have one connection at a time and a commit on disk for each batch.
func TestBulkSpeed(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for some seconds")
	}
	w := newWorld(t, 1)
	exec(t, w.pool, "CREATE TABLE "+w.table("by_hand")+" (order_id text PRIMARY KEY, amount int NOT NULL, note text NOT NULL)")
	exec(t, w.pool, "CREATE TABLE "+w.table("fenced")+" (order_id text NOT NULL, amount int NOT NULL, note text NOT NULL)")
	var hand, fenced []float64
	for round := range bulkRounds {
		hand = append(hand, w.byHand(round))
		fenced = append(fenced, w.fenced(round))
	}
	slices.Sort(hand)
	slices.Sort(fenced)
	a, b := hand[len(hand)/2], fenced[len(fenced)/2]
	t.Logf("%s: rows a second in batches of %d, medians of %d rounds: by hand %.0f, fenced %.0f, ratio %.2f (all: %.0f and %.0f)", servers.Postgres(t).Origin(), bulkBatch, bulkRounds, a, b, b/a, hand, fenced)
	if b/a < 0.4 {
		t.Errorf("the ratio is %.2f", b/a)
	}
}

func bulkID(round, i int) string { return fmt.Sprintf("order-%d-%08d", round, i*7919%bulkRows) }

const note = "a note of about a hundred bytes, as a row of an ingest would have: it is not looked at by anybody."

func (w *world) byHand(round int) float64 {
	w.t.Helper()
	ctx := w.t.Context()
	start := time.Now()
	for from := 0; from < bulkRows; from += bulkBatch {
		var ids, notes []string
		var amounts []int32
		for i := from; i < from+bulkBatch; i++ {
			ids, amounts, notes = append(ids, bulkID(round, i)), append(amounts, int32(i)), append(notes, note)
		}
		err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO "+w.table("by_hand")+" SELECT * FROM unnest($1::text[], $2::int[], $3::text[]) ON CONFLICT DO NOTHING", ids, amounts, notes)
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return bulkRows / time.Since(start).Seconds()
}

func (w *world) fenced(round int) float64 {
	w.t.Helper()
	name := fmt.Sprint("bulk", round)
	if err := w.broker.CreateTopic(name, &memsource.TopicOptions{Partitions: 1}); err != nil {
		w.t.Fatal(err)
	}
	for i := range bulkRows {
		r := driver.Record{Topic: name, Value: []byte(note), Headers: []driver.Header{{Key: "idempotency-key", Value: []byte(bulkID(round, i))}}}
		if _, err := w.broker.Produce(r); err != nil {
			w.t.Fatal(err)
		}
	}
	ingest := func(ctx context.Context, tx pgx.Tx, in []effect.Input) []effect.Outcome {
		out := effect.NewOutcomes(in)
		var ids, notes []string
		var amounts []int32
		for i := range in {
			ids, amounts, notes = append(ids, in[i].Key), append(amounts, int32(in[i].Origin.Offset)), append(notes, string(in[i].Payload))
		}
		_, err := tx.Exec(ctx, "INSERT INTO "+w.table("fenced")+" SELECT * FROM unnest($1::text[], $2::int[], $3::text[])", ids, amounts, notes)
		for i := range in {
			out[i].Err = err
		}
		return out
	}
	opts := w.options()
	opts.Concurrency, opts.PartitionRecords = 1, 8*bulkBatch
	opts.Scope = fence.ScopeID
	c, err := consumer.New(w.broker.Source(group, []string{name}, nil), w.fence, effect.TransactionalBatch(ingest, &effect.TransactionalOptions{MaxBatch: bulkBatch}), opts)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	start := time.Now()
	go func() { ended <- c.Run(ctx) }()
	tp := driver.TopicPartition{Topic: name}
	until(w.t, "all rows are in", func() bool {
		at, ok := w.broker.Committed(group, tp)
		return ok && at.Offset == bulkRows
	})
	took := time.Since(start)
	cancel()
	if err := <-ended; err != nil {
		w.t.Error(err)
	}
	return bulkRows / took.Seconds()
}

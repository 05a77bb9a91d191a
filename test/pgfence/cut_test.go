package pgfence_test

import (
	"context"
	"database/sql"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence/pgfence"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A COMMIT whose answer never comes was made or was not: in each case every order
// is charged once, and nobody has to look.
func TestConnectionCutAtCommit(t *testing.T) {
	for name, cut := range cuts {
		for _, over := range []string{"pgx", "database/sql"} {
			t.Run(name+"/"+over, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, 2)
				p := newProxy(t, w.pool, 2, cut)
				all := orders(60)
				for range 2 {
					for _, order := range all {
						w.produce(order, order)
					}
				}
				opts := w.options()
				opts.Concurrency = 3
				stop := w.startThrough(p, over, opts)
				w.settled()
				stop()
				charges := w.charges()
				for _, order := range all {
					if charges[order] != 1 {
						t.Errorf("%s was charged %d times", order, charges[order])
					}
				}
				if n := len(w.deadLetters()); n != 0 {
					t.Errorf("%d dead letters: %s", n, header(w.deadLetters()[0], "oncefence-error"))
				}
				if p.cuts.Load() < 3 {
					t.Errorf("only %d of %d commits were cut", p.cuts.Load(), p.commits.Load())
				}
				done, duplicates := w.seen.of(consumer.DecisionDone), w.seen.of(consumer.DecisionDuplicate)
				t.Logf("%d of %d commits cut: %d done, %d duplicates", p.cuts.Load(), p.commits.Load(), done, duplicates)
				if done != len(all) || duplicates != len(all) {
					t.Errorf("%d done and %d duplicates, want %d of each: what became of a commit was not found out", done, duplicates, len(all))
				}
			})
		}
	}
}

// startThrough runs a consumer whose connections go through the proxy.
func (w *world) startThrough(p *proxy, over string, opts *consumer.Options) (stop func()) {
	w.t.Helper()
	pgOpts := &pgfence.Options{Schema: w.schema, Fence: quiet()}
	small := &effect.TransactionalOptions{MaxBatch: 8}
	if over == "pgx" {
		f, err := pgfence.New(connect(w.t, w.pool.Config().ConnString(), p.through), pgOpts)
		if err != nil {
			w.t.Fatal(err)
		}
		return w.startOver(f, effect.Transactional(w.charge, small), opts)
	}
	config := w.pool.Config()
	p.through(config)
	db := stdlib.OpenDB(*config.ConnConfig)
	db.SetMaxOpenConns(8)
	w.t.Cleanup(func() { _ = db.Close() })
	f, err := pgfence.NewSQL(db, pgOpts)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.startOver(f, effect.Transactional(func(ctx context.Context, tx *sql.Tx, in effect.Input) (effect.Receipt, error) {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+w.table("charges")+" VALUES ($1, $2, $3, $4)", in.EffectID, string(in.Payload), in.Attempt, amount(in))
		return effect.Receipt{}, err
	}, small), opts)
}

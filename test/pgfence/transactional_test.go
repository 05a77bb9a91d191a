package pgfence_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

func TestEachOrderIsChargedOnce(t *testing.T) {
	for name, make := range map[string]func(*world) effect.Effect{
		"single": func(w *world) effect.Effect { return effect.Transactional(w.charge, nil) },
		"batch":  func(w *world) effect.Effect { return effect.TransactionalBatch(w.chargeAll, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			all := orders(200)
			for range 2 {
				for _, order := range all {
					w.produce(order, order)
				}
			}
			defer w.start(make(w), w.options())()
			w.settled()
			charges := w.charges()
			for _, order := range all {
				if charges[order] != 1 {
					t.Errorf("%s was charged %d times", order, charges[order])
				}
			}
			if done, duplicates := w.seen.of(consumer.DecisionDone), w.seen.of(consumer.DecisionDuplicate); done != len(all) || duplicates != len(all) {
				t.Errorf("%d done and %d duplicates, want %d of each: %v", done, duplicates, len(all), w.seen.count)
			}
		})
	}
}

// chargeAll writes the rows of all records with one statement.
func (w *world) chargeAll(ctx context.Context, tx pgx.Tx, in []effect.Input) []effect.Outcome {
	out := effect.NewOutcomes(in)
	var ids, orders []string
	var attempts, amounts []int32
	for i := range in {
		ids, orders = append(ids, in[i].EffectID), append(orders, string(in[i].Payload))
		attempts, amounts = append(attempts, int32(in[i].Attempt)), append(amounts, int32(amount(in[i])))
	}
	_, err := tx.Exec(ctx, "INSERT INTO "+w.table("charges")+" SELECT * FROM unnest($1::text[], $2::text[], $3::int[], $4::int[])", ids, orders, attempts, amounts)
	for i := range out {
		out[i] = effect.Outcome{Receipt: effect.Receipt{Payload: []byte("paid " + string(in[i].Payload))}, Err: err}
	}
	return out
}

// get reads the record of an order.
func (w *world) get(id string) fencedriver.Record {
	w.t.Helper()
	records, err := w.fence.Store().Get(w.t.Context(), namespaceOf(), []fencedriver.Digest{keyOf(id).Digest()})
	if err != nil {
		w.t.Fatal(err)
	}
	return records[0]
}

package pgfence_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/pgfence"
)

// Users of database/sql are given a *sql.Tx of their own *sql.DB.
func TestDatabaseSQL(t *testing.T) {
	w := newWorld(t, 1)
	db := connectSQL(t, w.pool.Config().ConnString())
	f, err := pgfence.NewSQL(db, &pgfence.Options{Schema: w.schema, Fence: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	all := orders(50)
	all = append(all, "unlucky")
	for range 2 {
		for _, order := range all {
			w.produce(order, order)
		}
	}
	w.produce("permanent", "permanent")
	charge := func(ctx context.Context, tx *sql.Tx, in effect.Input) (effect.Receipt, error) {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+w.table("charges")+" VALUES ($1, $2, $3, $4)", in.EffectID, string(in.Payload), in.Attempt, amount(in))
		if string(in.Payload) == "permanent" {
			return effect.Receipt{}, effect.Permanent(errRefused)
		}
		return effect.Receipt{}, err
	}
	stop := w.startOver(f, effect.Transactional(charge, nil), w.options())
	w.settled()
	until(t, "the odd ones are dead letters", func() bool { return len(w.deadLetters()) == 2 })
	stop()
	charges := w.charges()
	for _, order := range all {
		want := 1
		if order == "unlucky" { // the database refuses it
			want = 0
		}
		if charges[order] != want {
			t.Errorf("%s was charged %d times, want %d", order, charges[order], want)
		}
	}
	if charges["permanent"] != 0 {
		t.Error("what was rolled back stands")
	}
	if inUse := db.Stats().InUse; inUse != 0 {
		t.Errorf("%d connections were not given back", inUse)
	}
}

// A *sql.Tx can be committed by the effect: what it wrote is then in doubt.
func TestDatabaseSQLCommitOfTheEffect(t *testing.T) {
	w := newWorld(t, 1)
	f, err := pgfence.NewSQL(connectSQL(t, w.pool.Config().ConnString()), &pgfence.Options{Schema: w.schema, Fence: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	charge := func(ctx context.Context, tx *sql.Tx, in effect.Input) (effect.Receipt, error) {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+w.table("charges")+" VALUES ($1, $2, $3, 1)", in.EffectID, string(in.Payload), in.Attempt)
		return effect.Receipt{}, errors.Join(err, tx.Commit())
	}
	w.produce("odd", "odd")
	defer w.startOver(f, effect.Transactional(charge, nil), w.options())()
	w.settled()
	w.ended("odd", ending{state: fencedriver.Dead, charged: 1, doubt: true, reason: "in_doubt"})
}

func TestNewSQLRefusesOtherDrivers(t *testing.T) {
	sql.Register("strange", strange{})
	db, err := sql.Open("strange", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := pgfence.NewSQL(db, nil); err == nil || !strings.Contains(err.Error(), `sql.Open("pgx", url)`) {
		t.Errorf("%v", err)
	}
	if _, err := pgfence.NewSQL(nil, nil); err == nil {
		t.Error("nil passed")
	}
}

type strange struct{ sqldriver.Driver }

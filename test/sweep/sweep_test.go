package sweep_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/oncefence/oncefence/internal/fault"
	"github.com/oncefence/oncefence/test/servers"
	"github.com/oncefence/oncefence/test/sweep"
	"github.com/oncefence/oncefence/test/sweep/member"
)

// dir holds the member's program.
var dir string

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "sweep-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	servers.Main(m)
}

var build = sync.OnceValues(func() (string, error) {
	return member.Build(context.Background(), dir, "github.com/oncefence/oncefence/test/sweep/cmd")
})

func options(t *testing.T) sweep.Options {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(rand.Uint32())
	if text := os.Getenv("ONCEFENCE_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("ONCEFENCE_SEED: %v", err)
		}
	}
	t.Logf("ONCEFENCE_SEED=%d replays this run", seed)
	return sweep.Options{Program: program, Seed: seed, Progress: t.Output()}
}

// A process is killed at every fault point for each kind of effect: nothing is
// lost, nothing is applied twice, and what is in doubt goes the way of its kind.
func sweepStore(t *testing.T, o sweep.Options, store string) {
	t.Helper()
	for _, c := range sweep.Combos(store) {
		if c.Store == store && (c.Kind == "at-least-once") == (store == "none") {
			o.Combos = append(o.Combos, c)
		}
	}
	results, err := sweep.Run(t.Context(), o)
	t.Logf("\n%s", sweep.Table(results))
	if err != nil {
		t.Fatal(err)
	}
	if err := sweep.Verdict(results); err != nil {
		t.Error(err)
	}
	for _, c := range o.Combos {
		if results[c].Kills < len(c.Points()) {
			t.Errorf("%s on %s: %d kills at %d points", c.Kind, c.Store, results[c].Kills, len(c.Points()))
		}
	}
}

func TestKilledAtEveryPointOnBolt(t *testing.T) { sweepStore(t, options(t), "bolt") }

func TestKilledAtEveryPointOnRedis(t *testing.T) {
	o := options(t)
	o.Redis = servers.Redis(t).URL()
	sweepStore(t, o, "redis")
}

func TestKilledAtEveryPointAtLeastOnce(t *testing.T) { sweepStore(t, options(t), "none") }

// Every named point is killed at by some chain.
func TestEveryPointIsSwept(t *testing.T) {
	swept := make(map[string]bool)
	for _, c := range sweep.Combos("bolt", "redis") {
		for _, point := range c.Points() {
			swept[point] = true
		}
	}
	for _, point := range fault.Points() {
		transact := point == fault.TransactBefore || point == fault.TransactAfter // swept with PostgreSQL
		if swept[point] == transact {
			t.Errorf("%s: swept %v", point, swept[point])
		}
	}
}

// A record whose effect kills its process ends as a dead letter after three
// crashes, alone: its neighbours are applied.
func TestARecordThatKillsItsProcess(t *testing.T) {
	o := options(t)
	for kind, want := range map[string]struct{ kills, crashed, parked int }{
		"idempotent":   {3, 1, 1},
		"probed":       {3, 1, 0}, // the sink says that nothing was applied
		"at-most-once": {1, 0, 1},
	} {
		t.Run(kind, func(t *testing.T) {
			const neighbours = 60
			res, err := sweep.Poison(t.Context(), o, sweep.Combo{Kind: kind, Store: "bolt"}, neighbours, 6)
			if err != nil {
				t.Fatal(err)
			}
			got := res.Tally
			if res.Kills != want.kills || got.Crashed != want.crashed {
				t.Errorf("%d processes died and %d records ended as crashed, want %d and %d", res.Kills, got.Crashed, want.kills, want.crashed)
			}
			// At-most-once may not run again what a crash interrupted: neighbours that
			// ran at that moment (8 do) or were not sealed yet (a batch is 16) are
			// parked too.
			innocent := got.Parked - want.parked
			if innocent < 0 || (kind != "at-most-once" && innocent > 0) || innocent > 24 {
				t.Errorf("%d parked, want %d", got.Parked, want.parked)
			}
			if got.Applied+innocent != neighbours || got.Lost != 0 || got.Twice != 0 || got.Wrong != 0 {
				t.Errorf("%d of %d neighbours applied: %+v", got.Applied, neighbours, got)
			}
		})
	}
}

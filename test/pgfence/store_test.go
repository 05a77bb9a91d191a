package pgfence_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/pgfence"
	"github.com/oncefence/oncefence/test/servers"
)

const ns = "%-:store"

func digest(i int) driver.Digest {
	return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i)))
}

// claims asks for the keys from i to i+n.
func claims(i, n int) []driver.Claim {
	out := make([]driver.Claim, n)
	for k := range out {
		key := digest(i + k)
		out[k] = driver.Claim{Key: key, Nonce: driver.Nonce(key[16:]), Kind: driver.KindIdempotent, Attempt: 1, Lease: time.Hour, TakeoverUntil: 1 << 52}
	}
	return out
}

// hold claims the keys and wants them new.
func hold(t *testing.T, store *pgfence.Store, asked []driver.Claim) []driver.Claimed {
	t.Helper()
	out := store.Claim(t.Context(), ns, asked)
	for i := range out {
		if out[i].Err != nil || out[i].Answer != driver.New {
			t.Fatalf("claim %d: %v, %v", i, out[i].Answer, out[i].Err)
		}
	}
	return out
}

func seals(asked []driver.Claim, held []driver.Claimed, retention time.Duration) []driver.Transition {
	out := make([]driver.Transition, len(asked))
	for i := range out {
		out[i] = driver.Transition{Op: driver.Seal, Key: asked[i].Key, Token: held[i].Record.Token, Attempt: 1, Kind: driver.KindIdempotent, Retention: retention, EffectID: "e"}
	}
	return out
}

func apply(t *testing.T, store *pgfence.Store, all []driver.Transition, want driver.Outcome) {
	t.Helper()
	for i, a := range store.Apply(t.Context(), ns, all) {
		if a.Err != nil || a.Outcome != want {
			t.Fatalf("%s %d: %v, %v, want %v", all[i].Op, i, a.Outcome, a.Err, want)
		}
	}
}

func TestSchemaIsMadeOnce(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	name := schema(t, pool)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			store := open(t, pool, &pgfence.Options{Schema: name})
			if _, err := store.Marker(t.Context(), ns, driver.Marker{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	exec(t, pool, "UPDATE "+pgx.Identifier{name, "version"}.Sanitize()+" SET version = 99")
	_, err := open(t, pool, &pgfence.Options{Schema: name}).Get(t.Context(), ns, []driver.Digest{digest(0)})
	if err == nil || !strings.Contains(err.Error(), "has version 99, this program knows up to 1") {
		t.Errorf("a newer schema: %v", err)
	}
}

func TestNoMigrate(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	name := schema(t, pool)
	store := open(t, pool, &pgfence.Options{Schema: name, NoMigrate: true})
	out := store.Claim(t.Context(), ns, claims(0, 1))
	if out[0].Err == nil || !strings.Contains(out[0].Err.Error(), pgfence.SchemaSQL(name)) {
		t.Fatalf("a schema that is missing: %v", out[0].Err)
	}
	exec(t, pool, pgfence.SchemaSQL(name))
	hold(t, store, claims(0, 1)) // the same store goes on
}

// A role that may only use the tables is enough with NoMigrate, and without, once
// the schema is there.
func TestRightsThatAreNeeded(t *testing.T) {
	url := servers.Postgres(t).URL()
	pool := connect(t, url)
	name := schema(t, pool)
	quoted := pgx.Identifier{name}.Sanitize()
	exec(t, pool, pgfence.SchemaSQL(name))
	exec(t, pool, "DROP ROLE IF EXISTS oncefence_test")
	exec(t, pool, "CREATE ROLE oncefence_test")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, _ = pool.Exec(ctx, "DROP OWNED BY oncefence_test")
		_, _ = pool.Exec(ctx, "DROP ROLE oncefence_test")
	})
	exec(t, pool, "GRANT USAGE ON SCHEMA "+quoted+" TO oncefence_test")
	exec(t, pool, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "+quoted+" TO oncefence_test")
	exec(t, pool, "GRANT USAGE ON ALL SEQUENCES IN SCHEMA "+quoted+" TO oncefence_test")
	limited := connect(t, url, func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "SET ROLE oncefence_test")
			return err
		}
	})
	store := open(t, limited, &pgfence.Options{Schema: name})
	asked := claims(0, 3)
	apply(t, store, seals(asked, hold(t, store, asked), time.Microsecond), driver.OK)
	if n, err := store.Purge(t.Context(), ns, 10); n != 3 || err != nil {
		t.Errorf("purge: %d, %v", n, err)
	}
	if g, err := store.Grade(t.Context()); err != nil || g.Level == driver.GradeUnknown {
		t.Errorf("grade: %v, %v", g, err)
	}
	other := schema(t, pool)
	if out := open(t, limited, &pgfence.Options{Schema: other}).Claim(t.Context(), ns, claims(0, 1)); out[0].Err == nil || !strings.Contains(out[0].Err.Error(), "let its owner run") {
		t.Errorf("a schema that the role may not make: %v", out[0].Err)
	}
}

func TestGrade(t *testing.T) {
	url := servers.Postgres(t).URL()
	for setting, want := range map[string]driver.Level{"on": driver.GradeMachine, "local": driver.GradeMachine, "off": driver.GradeVolatile} {
		pool := connect(t, url, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["synchronous_commit"] = setting })
		g, err := open(t, pool, nil).Grade(t.Context())
		if err != nil || g.Level != want || !strings.Contains(g.Detail, "synchronous_commit="+setting) {
			t.Errorf("synchronous_commit=%s: %v, %v, want %s", setting, g, err, want)
		}
		if g.Skew > time.Minute || g.Skew < -time.Minute {
			t.Errorf("skew %v", g.Skew)
		}
	}
	fast := servers.OwnPostgres(t, &servers.PostgresOptions{NoFsync: true})
	if g, err := open(t, connect(t, fast.URL()), nil).Grade(t.Context()); err != nil || g.Level != driver.GradeRestart {
		t.Errorf("fsync=off: %v, %v", g, err)
	}
	pool := connect(t, url)
	name := schema(t, pool)
	exec(t, pool, pgfence.SchemaSQL(name))
	exec(t, pool, "ALTER TABLE "+pgx.Identifier{name, "record"}.Sanitize()+" SET UNLOGGED")
	if g, err := open(t, pool, &pgfence.Options{Schema: name}).Grade(t.Context()); err != nil || g.Level != driver.GradeVolatile {
		t.Errorf("an unlogged table: %v, %v", g, err)
	}
}

func TestOptionsAreRefused(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	if _, err := pgfence.NewStore(pool, &pgfence.Options{Schema: strings.Repeat("x", 64)}); err == nil || !strings.Contains(err.Error(), "63 bytes") {
		t.Errorf("a long schema name: %v", err)
	}
	reader := connect(t, pool.Config().ConnString(), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on" })
	if _, err := pgfence.NewStore(reader, nil); err == nil || !strings.Contains(err.Error(), "default_transaction_read_only") {
		t.Errorf("a read-only pool: %v", err)
	}
	store := open(t, pool, nil)
	for _, bad := range []string{"", "a\x00b", strings.Repeat("x", 2000)} {
		if _, err := store.Get(t.Context(), bad, nil); err == nil {
			t.Errorf("namespace of %d bytes passed", len(bad))
		}
	}
}

// Tokens of a key grow also when the sequence is set back, as after a failover to
// a server that was behind.
func TestTokensGrowOverASequenceThatWasSetBack(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	name := schema(t, pool)
	store := open(t, pool, &pgfence.Options{Schema: name})
	asked := claims(0, 1)
	asked[0].Lease = time.Microsecond
	first := hold(t, store, asked)[0].Record.Token
	exec(t, pool, "SELECT setval('"+pgx.Identifier{name, "token"}.Sanitize()+"', 1, false)")
	asked[0].Nonce[0]++
	out := store.Claim(t.Context(), ns, asked)
	if out[0].Answer != driver.InDoubt || out[0].Record.Token <= first {
		t.Errorf("%v, %v with token %d after %d", out[0].Answer, out[0].Err, out[0].Record.Token, first)
	}
}

// A server whose lock table is too small says what to do.
func TestLockTableIsFull(t *testing.T) {
	small := servers.OwnPostgres(t, &servers.PostgresOptions{NoFsync: true, Settings: map[string]string{"max_locks_per_transaction": "10", "max_connections": "10"}})
	store := open(t, connect(t, small.URL()), nil)
	// Each transaction keeps its locks while the next one asks for its own.
	var failed error
	var nest func(i int)
	nest = func(i int) {
		out := store.Transact(t.Context(), ns, claims(i*512, 512), func(driver.Tx, []driver.Claimed) ([]driver.Transition, error) {
			if i < 5 {
				nest(i + 1)
			}
			return nil, errStop
		})
		if err := out[0].Claimed.Err; failed == nil && !errors.Is(err, errStop) {
			failed = err
		}
	}
	nest(0)
	if failed == nil || !strings.Contains(failed.Error(), "max_locks_per_transaction") || !strings.Contains(failed.Error(), "nothing was written") {
		t.Errorf("3,072 locks in a table for a few hundred: %v", failed)
	}
	hold(t, store, claims(100_000, 20)) // smaller ones pass
}

func TestLargeBatches(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	store := open(t, pool, &pgfence.Options{Schema: schema(t, pool)})
	asked := claims(0, 1300)
	held := hold(t, store, asked)
	seen := map[uint64]bool{}
	for i := range held {
		if token := held[i].Record.Token; seen[token] {
			t.Fatalf("token %d was given twice", token)
		}
		seen[held[i].Record.Token] = true
	}
	apply(t, store, seals(asked, held, time.Hour), driver.OK)
}

// A connection that the server has closed is noticed, and nothing is half done.
func TestServerEndsConnections(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	store := open(t, pool, &pgfence.Options{Schema: schema(t, pool)})
	hold(t, store, claims(0, 1))
	killAll := func() {
		exec(t, connect(t, pool.Config().ConnString()), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = $1", t.Name())
	}
	named := connect(t, pool.Config().ConnString(), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = t.Name() })
	store, err := pgfence.NewStore(named, &pgfence.Options{Schema: "oncefence"})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 5 {
		asked := claims(10*round, 5)
		for i := range asked {
			asked[i].Key[31] ^= byte(round) // not those of other tests
		}
		killAll()
		until(t, "the claim is answered", func() bool {
			out := store.Claim(t.Context(), ns+t.Name(), asked)
			for i := range out {
				if out[i].Err != nil {
					return false
				}
			}
			return true
		})
	}
}

var errStop = errors.New("stop")

func wantAll(out []driver.Claimed, want driver.Answer) error {
	for i := range out {
		if out[i].Err != nil || out[i].Answer != want {
			return fmt.Errorf("claim %d: %v, %w, want %v", i, out[i].Answer, out[i].Err, want)
		}
	}
	return nil
}

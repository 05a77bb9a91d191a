package pgfence_test

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/pgfence"
	"github.com/oncefence/oncefence/test/servers"
)

func numberOf(namespace string) int64 {
	sum := sha256.Sum256([]byte(namespace))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

func count(t *testing.T, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPurgeIsBounded(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	name := schema(t, pool)
	store := open(t, pool, &pgfence.Options{Schema: name})
	asked := claims(0, 700)
	held := hold(t, store, asked)
	apply(t, store, seals(asked[:600], held[:600], time.Microsecond), driver.OK)
	apply(t, store, seals(asked[600:650], held[600:650], time.Hour), driver.OK)
	for _, want := range []int{250, 250, 100, 0} {
		if n, err := store.Purge(t.Context(), ns, 250); n != want || err != nil {
			t.Errorf("purged %d, %v, want %d", n, err, want)
		}
	}
	records := count(t, pool, pgx.Identifier{name, "record"}.Sanitize())
	entries := count(t, pool, pgx.Identifier{name, "expiry"}.Sanitize())
	if records != 100 || entries != 1 {
		t.Errorf("%d records and %d entries are left, want 100 and 1", records, entries)
	}
}

// No statement reads more of a table than it has keys, also while the server has
// no statistics about it, as in a table that has just grown.
func TestStatementsReadOnlyTheirKeys(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL(), func(c *pgxpool.Config) { c.MaxConns = 1 })
	name := schema(t, pool)
	store := open(t, pool, &pgfence.Options{Schema: name})
	record := pgx.Identifier{name, "record"}.Sanitize()
	hold(t, store, claims(0, 1))
	exec(t, pool, "ALTER TABLE "+record+" SET (autovacuum_enabled = off)")
	filled := claims(1000, 10_000)
	held := hold(t, store, filled)
	apply(t, store, seals(filled[:5000], held[:5000], time.Hour), driver.OK)
	for round := range 12 { // beyond the five that are planned anew in any case
		before := reads(t, pool, name)
		fresh := claims(100_000+round*100, 100)
		got := hold(t, store, fresh)
		if err := wantAll(store.Claim(t.Context(), ns, renonced(filled[round*100:round*100+100])), driver.Duplicate); err != nil {
			t.Fatal(err)
		}
		apply(t, store, seals(fresh, got, time.Hour), driver.OK)
		if _, err := store.Get(t.Context(), ns, []driver.Digest{digest(1), digest(2)}); err != nil {
			t.Fatal(err)
		}
		if read := reads(t, pool, name) - before; read > 2000 {
			t.Errorf("round %d: 302 keys took %d reads of rows and index entries", round, read)
		}
	}
}

// reads is how many rows and index entries of the table record were read so far.
func reads(t *testing.T, pool *pgxpool.Pool, schema string) (n int) {
	t.Helper()
	exec(t, pool, "SELECT pg_stat_force_next_flush()")
	err := pool.QueryRow(t.Context(), `SELECT t.seq_tup_read + i.idx_tup_read FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid)
		WHERE t.schemaname = $1 AND t.relname = 'record'`, schema).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func renonced(asked []driver.Claim) []driver.Claim {
	for i := range asked {
		asked[i].Nonce[0]++
	}
	return asked
}

// Seals and renewals stay within the page of their row: no index entry is made
// for them.
func TestSealsAndRenewalsTouchNoIndex(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	name := schema(t, pool)
	store := open(t, pool, &pgfence.Options{Schema: name})
	asked := claims(0, 2000)
	held := hold(t, store, asked)
	renewals := make([]driver.Transition, len(asked))
	for i := range renewals {
		renewals[i] = driver.Transition{Op: driver.Renew, Key: asked[i].Key, Token: held[i].Record.Token, Lease: time.Hour}
	}
	apply(t, store, renewals[:200], driver.OK)
	apply(t, store, seals(asked, held, time.Hour), driver.OK)
	var all, hot int
	until(t, "the statistics are there", func() bool {
		err := pool.QueryRow(t.Context(), "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'record'", name).Scan(&all, &hot)
		if err != nil {
			t.Fatal(err)
		}
		return all >= 2200
	})
	t.Logf("%d of %d updates stayed in their page", hot, all)
	if hot < all*8/10 {
		t.Errorf("%d of %d updates stayed in their page", hot, all)
	}
}

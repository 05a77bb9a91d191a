package pgfence_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncefence/oncefence/fence/pgfence"
	"github.com/oncefence/oncefence/test/servers"
)

// mainOfTests is TestMain, unless this process is a child.
func mainOfTests(m *testing.M) { servers.Main(m) }

// connect opens a pool that is closed at the end of the test.
func connect(tb testing.TB, url string, tweaks ...func(*pgxpool.Config)) *pgxpool.Pool {
	tb.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	config.MaxConns = 8
	for _, tweak := range tweaks {
		tweak(config)
	}
	pool, err := pgxpool.NewWithConfig(tb.Context(), config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// open makes a store that is closed at the end of the test.
func open(tb testing.TB, pool *pgxpool.Pool, opts *pgfence.Options) *pgfence.Store {
	tb.Helper()
	store, err := pgfence.NewStore(pool, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

var schemas atomic.Int64

// schema names one of its own for this test, dropped at its end.
func schema(tb testing.TB, pool *pgxpool.Pool) string {
	tb.Helper()
	name := fmt.Sprintf("t%d %q", schemas.Add(1), strings.ToLower(tb.Name()))
	name = name[:min(len(name), 56)]
	drop := "DROP SCHEMA IF EXISTS " + pgx.Identifier{name}.Sanitize() + " CASCADE"
	exec(tb, pool, drop)
	tb.Cleanup(func() { _, _ = pool.Exec(context.WithoutCancel(tb.Context()), drop) })
	return name
}

func exec(tb testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	tb.Helper()
	if _, err := pool.Exec(tb.Context(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

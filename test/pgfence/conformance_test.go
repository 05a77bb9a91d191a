package pgfence_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/fencetest"
	"github.com/oncefence/oncefence/fence/pgfence"
	"github.com/oncefence/oncefence/test/servers"
)

func harness(make func() (*pgfence.Store, error)) fencetest.Harness {
	return fencetest.Harness{
		Open:     func(context.Context) (driver.Store, error) { return make() },
		Second:   func(context.Context, driver.Store) (driver.Store, error) { return make() },
		Parallel: true,
	}
}

func TestConformance(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	fencetest.Test(t, harness(func() (*pgfence.Store, error) { return pgfence.NewStore(pool, nil) }))
}

// Each way of sending statements: poolers need the others.
func TestConformanceModes(t *testing.T) {
	if testing.Short() {
		t.Skip("the default mode runs in TestConformance")
	}
	for name, mode := range map[string]pgx.QueryExecMode{
		"exec": pgx.QueryExecModeExec, "simple": pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(name, func(t *testing.T) {
			pool := connect(t, servers.Postgres(t).URL(), func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
			fencetest.Test(t, harness(func() (*pgfence.Store, error) { return pgfence.NewStore(pool, nil) }))
		})
	}
}

func TestConformanceSQL(t *testing.T) {
	db := connectSQL(t, servers.Postgres(t).URL())
	fencetest.Test(t, harness(func() (*pgfence.Store, error) { return pgfence.NewSQLStore(db, nil) }))
}

func connectSQL(tb testing.TB, url string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(8)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

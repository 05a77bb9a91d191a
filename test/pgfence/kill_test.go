package pgfence_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/test/servers"
)

// kills are the places at which a consumer dies: before a statement is sent, and
// after its answer was read, at the beginning and somewhere in the middle.
var kills = []string{
	"start 1 begin isolation", "end 3 begin isolation", // a transaction
	"start 1 pg_try_advisory_xact_lock", "end 3 pg_try_advisory_xact_lock", // its claims
	"start 2 SAVEPOINT oncefence", "end 5 SAVEPOINT oncefence", // between two effects
	"start 2 charges", "end 1 charges", "end 3 charges", // an effect's statement
	"end 1 ROLLBACK TO SAVEPOINT",                                                                                    // of the one that fails
	"start 1 RELEASE SAVEPOINT oncefence;SELECT set_config", "start 3 RELEASE SAVEPOINT oncefence;SELECT set_config", // right before what becomes of them and COMMIT
	"end 1 RELEASE SAVEPOINT oncefence;SELECT set_config", "end 3 RELEASE SAVEPOINT oncefence;SELECT set_config", // right after it
	"start 1 ORDER BY digest FOR UPDATE;SELECT (extract", "end 1 ORDER BY digest FOR UPDATE;SELECT (extract", // the dead letter's bury
}

// Wherever a consumer is killed, the next one charges every order once, and the
// one that fails for good is charged never.
func TestKills(t *testing.T) {
	url := servers.Postgres(t).URL()
	pool := connect(t, url)
	name := schema(t, pool)
	exec(t, pool, "CREATE SCHEMA "+pgx.Identifier{name}.Sanitize()) // holds the fence and the tables
	for _, form := range []string{"single", "batch"} {
		for i, at := range kills {
			if form == "batch" && (testing.Short() || strings.Contains(at, "5 SAVEPOINT")) {
				continue // it has fewer savepoints, and statements alike
			}
			t.Run(form+"/"+at, func(t *testing.T) {
				table := pgx.Identifier{name, fmt.Sprintf("charges %s %d", form, i)}.Sanitize()
				exec(t, pool, "CREATE TABLE "+table+" (order_id text NOT NULL)")
				start := func(kill string) error {
					return startChild(t, childURL+"="+url, childSchema+"="+name, childTable+"="+table, childForm+"="+form, childKill+"="+kill)
				}
				err := start(at)
				var exit *osexec.ExitError
				if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL { //nolint:errcheck // on Unix it is
					t.Fatalf("the child was not killed: %v", err)
				}
				if err := start(""); err != nil {
					t.Fatalf("the child after it: %v", err)
				}
				var rows, orders, never int
				if err := pool.QueryRow(t.Context(), "SELECT count(*), count(DISTINCT order_id), count(*) FILTER (WHERE order_id = 'never') FROM "+table).Scan(&rows, &orders, &never); err != nil {
					t.Fatal(err)
				}
				if rows != childOrders+1 || orders != childOrders+1 || never != 0 {
					t.Errorf("%d charges of %d orders, want %d of each; %d of the one that must not be charged", rows, orders, childOrders+1, never)
				}
			})
		}
	}
}

func startChild(t *testing.T, env ...string) error {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.CommandContext(t.Context(), self, "-test.run=^$")
	cmd.Env = append(os.Environ(), env...)
	if _, err := cmd.StdinPipe(); err != nil { // ends with this process
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, out.String())
	}
	return nil
}

package chaos_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/oncefence/oncefence/test/chaos"
	"github.com/oncefence/oncefence/test/servers"
	"github.com/oncefence/oncefence/test/sweep/member"
)

// The storm in short: every kind of event at least once. Nothing is lost,
// nothing is applied twice, nothing of an aborted transaction is applied, and an
// emptied store stops the group.
func TestStorm(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: the storm kills servers that it finds in /proc, which only Linux has")
	}
	// Two minutes and three brokers: on demand, as are its longer forms.
	if os.Getenv("ONCEFENCE_STORM") == "" {
		t.Skip("SKIPPED: the storm runs on demand: ONCEFENCE_STORM=1 go test ./test/chaos, or make chaos")
	}
	program, err := member.Build(t.Context(), t.TempDir(), "github.com/oncefence/oncefence/test/chaos/cmd")
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(rand.Uint32())
	if text := os.Getenv("ONCEFENCE_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("ONCEFENCE_SEED: %v", err)
		}
	}
	t.Logf("ONCEFENCE_SEED=%d replays the order of events", seed)
	report, err := chaos.Run(t.Context(), chaos.Options{Program: program, Seed: seed, Calm: 5 * time.Second, Storm: 25 * time.Second, Progress: t.Output()})
	if errors.Is(err, servers.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skipf("SKIPPED FOR LACK OF A SERVER: %v", err)
	}
	t.Logf("\n%s", report.Table())
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Verdict(); err != nil {
		t.Error(err)
	}
}

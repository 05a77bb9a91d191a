// Package fenceurl_test opens fences by URL on real servers, and reads them
// with the program.
package fenceurl_test

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/internal/fenceurl"
	"github.com/oncefence/oncefence/test/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// seal writes one sealed record into a namespace of its own.
func seal(t *testing.T, raw string, key fence.Key) fence.Namespace {
	t.Helper()
	ns, err := fence.NewNamespace(fence.Text("test"), fmt.Sprintf("%s %d", t.Name(), time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	f, err := fenceurl.OpenWith(t.Context(), raw, &fenceurl.Options{Fence: &fence.Options{Retention: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	space, err := f.Open(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	claimed := space.Claim(t.Context(), []*fence.Request{{Key: key, Kind: driver.KindIdempotent, Attempt: 1, Lease: time.Minute}})
	if claimed[0].Err != nil || claimed[0].Answer != driver.New {
		t.Fatalf("claim: %v, %v", claimed[0].Answer, claimed[0].Err)
	}
	sealed := space.Apply(t.Context(), []driver.Transition{claimed[0].Hold.Seal(driver.KindIdempotent, "charge-1", nil)})
	if sealed[0].Err != nil || sealed[0].Outcome != driver.OK {
		t.Fatalf("seal: %v, %v", sealed[0].Outcome, sealed[0].Err)
	}
	if err := errors.Join(space.Close(t.Context()), f.Close()); err != nil {
		t.Fatal(err)
	}
	return ns
}

func TestKeyCommandReadsRedis(t *testing.T) {
	raw := servers.Redis(t).URL()
	binary := filepath.Join(t.TempDir(), "oncefence")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/oncefence").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	key := fence.RecordKey(fence.ScopeID, "orders", 3, fence.Nil, fence.Text("order-1"))
	show := func(raw string, ns fence.Namespace) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), binary, "key", "--fence", raw, "--namespace", ns.Text(), "--text", key.Text()).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}

	ns := seal(t, raw, key)
	if out := show(raw, ns); !strings.Contains(out, "\nstate           done\n") || !strings.Contains(out, "\nsink id         charge-1\n") {
		t.Errorf("%s", out)
	}
	other, err := fence.NewNamespace(fence.Nil, ns.Group())
	if err != nil {
		t.Fatal(err)
	}
	if out := show(raw, other); !strings.Contains(out, "\nstate           absent\n") {
		t.Errorf("another tenant's record was found:\n%s", out)
	}

	// A namespace with buckets of its own is read with the same number.
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = "buckets=3"
	if out := show(u.String(), seal(t, u.String(), key)); !strings.Contains(out, "\nstate           done\n") {
		t.Errorf("with 3 buckets: %s", out)
	}
}

func TestWrongPasswordIsNotPrinted(t *testing.T) {
	server := servers.OwnRedis(t, nil)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer admin.Close()
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "teller", "on", ">right", "~*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := fenceurl.Open(t.Context(), "redis://teller:wrong-secret@"+server.Addr())
	if err == nil || !strings.Contains(err.Error(), "open fence redis://teller@"+server.Addr()+": ") || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	f, err := fenceurl.Open(t.Context(), "redis://teller:right@"+server.Addr()+"/1")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

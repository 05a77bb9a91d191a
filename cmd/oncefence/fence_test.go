package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/boltfence"
	"github.com/oncefence/oncefence/fence/driver"
)

// sealedFile is a bolt file whose namespace %-:billing holds order-1 as done,
// order-2 as pending, and no order-3.
func sealedFile(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "fence.db")
	f, err := boltfence.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := fence.NewNamespace(fence.Nil, "billing")
	if err != nil {
		t.Fatal(err)
	}
	space, err := f.Open(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	requests := make([]*fence.Request, 2)
	for i, id := range []string{"order-1", "order-2"} {
		requests[i] = &fence.Request{
			Key:  fence.RecordKey(fence.ScopePartition, "orders", 3, fence.Text("customer-1"), fence.Text(id)),
			Kind: driver.KindIdempotent, Attempt: 1, Lease: time.Minute, Fingerprint: fence.FingerprintOf([]byte("hello")),
			Origin: driver.Origin{Source: "kafka", Topic: "orders", Partition: 3, Offset: int64(i), Timestamp: 1_777_630_500_123},
		}
	}
	claimed := space.Claim(t.Context(), requests)
	for _, c := range claimed {
		if c.Err != nil || c.Answer != driver.New {
			t.Fatalf("claim: %v, %v", c.Answer, c.Err)
		}
	}
	seal := claimed[0].Hold.Seal(driver.KindIdempotent, "charge-1", []byte(`{"cents":990}`))
	if sealed := space.Apply(t.Context(), []driver.Transition{seal}); sealed[0].Err != nil || sealed[0].Outcome != driver.OK {
		t.Fatalf("seal: %v, %v", sealed[0].Outcome, sealed[0].Err)
	}
	if err := errors.Join(space.Close(t.Context()), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKeyShowsTheStoredRecord(t *testing.T) {
	path := sealedFile(t)
	t.Chdir(filepath.Dir(path)) // so that the output does not name the folder
	args := func(id string, more ...string) []string {
		return append([]string{"key", "orders", "3", "customer-1", id, "--namespace", "%-:billing", "--fence", "bolt:fence.db"}, more...)
	}
	golden(t, "key-done", args("order-1")...)
	golden(t, "key-pending", args("order-2")...)
	golden(t, "key-absent", args("order-3")...)

	status, stdout, stderr := call(t, args("order-1", "--json")...)
	var answer struct {
		Text, Fence string
		EffectID    string `json:"effect_id"`
		Record      struct {
			State, Kind, Fingerprint string
			SinkID                   string `json:"sink_id"`
			Receipt                  []byte
			Origin                   struct {
				Topic  string
				Offset *int64
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || status != 0 || stderr != "" {
		t.Fatalf("exit status %d, stdout %q, stderr %q, %v", status, stdout, stderr, err)
	}
	r := answer.Record
	if answer.Text != "orders:3:customer-1:order-1" || answer.Fence != "bolt:fence.db" || answer.EffectID != "46bc4c93fee5342064a5b958b07fd659" ||
		r.State != "done" || r.Kind != "idempotent" || r.SinkID != "charge-1" || string(r.Receipt) != `{"cents":990}` ||
		r.Fingerprint != "1:2cf24dba5fb0a30e26e83b2ac5b9e29e" || r.Origin.Topic != "orders" || r.Origin.Offset == nil || *r.Origin.Offset != 0 {
		t.Errorf("%s", stdout)
	}
}

// A failure is not a usage error, and prints no password.
func TestKeyFailsWithoutItsFence(t *testing.T) {
	missing := "bolt:" + filepath.Join(t.TempDir(), "none.db")
	cases := []struct{ url, why string }{
		{missing, "there is no fence to read"},
		{"mem:", "there is nothing to read from here"},
		{"mysql://u:secret@h/x", "there is no mysql fence"},
		{"redis://u:secret@127.0.0.1:1", "the server cannot be used"},
	}
	for _, c := range cases {
		status, stdout, stderr := call(t, "key", "orders", "3", "c", "o", "--namespace", "billing", "--fence", c.url)
		if status != 1 || stdout != "" || !strings.Contains(stderr, c.why) || strings.Contains(stderr, "secret") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q, want 1 and %s", c.url, status, stdout, stderr, c.why)
		}
	}
}

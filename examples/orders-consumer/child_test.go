package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A consumer process whose standard input is closed has lost its parent: it
// ends, on every system.
func TestChildWithoutParent(t *testing.T) {
	t.Parallel()
	b, err := openBroker(t.Context(), nil, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(t.Context(), false); err != nil {
			t.Error(err)
		}
	}()
	cfg, err := json.Marshal(settings{
		Brokers: b.addrs, Topic: b.topic, Group: b.group, Instance: "i", Members: 1, Fence: "bolt:" + t.TempDir() + "/fence.db",
		Kind: "idempotent", Provider: "http://127.0.0.1:1", Lease: lease,
	})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+string(cfg))
	cmd.Stdin = strings.NewReader("") // closed at once
	_ = cmd.Run()
	if status := cmd.ProcessState.ExitCode(); status != 3 {
		t.Errorf("exit status %d, want 3", status)
	}
}

func TestChildRefusesNonsense(t *testing.T) {
	if err := runChild("no json"); err == nil || !strings.Contains(err.Error(), childEnv) {
		t.Errorf("a child with nonsense for settings says %v", err)
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchOnABoltFile runs the command for real, small: every figure is there
// and nothing is left behind.
func TestBenchOnABoltFile(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	status := dispatch(t.Context(), []string{"bench", "--fence", "bolt:" + filepath.Join(dir, "fence.db"), "--records", "2000", "--rounds", "2", "--json"}, streams{&stdout, &stderr})
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr.String())
	}
	var figures map[string]any
	if err := json.Unmarshal(stdout.Bytes(), &figures); err != nil {
		t.Fatalf("%v: %s", err, stdout.String())
	}
	for _, name := range []string{
		"records", "fenced_per_second", "floor_per_second", "naive_per_second", "ratio_floor", "ratio_naive", "p50_ms", "p99_ms", "allocs_per_record",
	} {
		if n, ok := figures[name].(float64); !ok || n <= 0 {
			t.Errorf("%s is %v", name, figures[name])
		}
	}
	if _, ok := figures["store_bytes_per_record"].(float64); !ok {
		t.Errorf("store_bytes_per_record is %v", figures["store_bytes_per_record"])
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBenchRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                               "--fence is missing",
		"--fence bolt:x --records 10":    "at least 1000",
		"--fence bolt:x --rounds 0":      "must be positive",
		"--fence bolt:x extra":           "unexpected argument",
		"--fence nosuch:x":               "known are",
		"--fence redis://127.0.0.1:1/0":  "redis://127.0.0.1:1/0",
		"--fence bolt:/no/such/dir/x.db": "/no/such/dir",
	} {
		var stdout, stderr bytes.Buffer
		status := dispatch(t.Context(), append([]string{"bench"}, strings.Fields(args)...), streams{&stdout, &stderr})
		if status == 0 || !strings.Contains(stderr.String(), want) || stdout.Len() != 0 {
			t.Errorf("bench %s: status %d, stderr %q, want %q in it", args, status, stderr.String(), want)
		}
	}
}

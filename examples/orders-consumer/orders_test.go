package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func decode(t *testing.T, l line) order {
	t.Helper()
	var o order
	if err := json.Unmarshal(l.value, &o); err != nil {
		t.Fatalf("%s: %v", l.value, err)
	}
	return o
}

func TestGenerate(t *testing.T) {
	lines, err := generate(1000, 20)
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1200 {
		t.Errorf("%d lines of 1000 orders and 20 %% duplicates, want 1200", len(lines))
	}
	first := map[string]string{}
	twice, anonymous, firsts := 0, 0, []string{}
	for _, l := range lines {
		o := decode(t, l)
		switch value, seen := first[o.ID]; {
		case !seen:
			first[o.ID] = string(l.value)
			firsts = append(firsts, o.ID)
			if o.Customer == "" {
				anonymous++
			}
		case value != string(l.value):
			t.Errorf("order %s comes again as %s, first as %s", o.ID, l.value, value)
		default:
			twice++
		}
		if o.ID == "" || o.AmountCents <= 0 {
			t.Errorf("no order: %s", l.value)
		}
	}
	if len(first) != 1000 || twice != 200 {
		t.Errorf("%d orders of which %d come twice, want 1000 and 200", len(first), twice)
	}
	if anonymous == 0 || anonymous > 100 {
		t.Errorf("%d of 1000 orders have no customer, want about 20", anonymous)
	}
	if slices.Equal(firsts[800:], ids(t, lines)[1000:]) {
		t.Error("all duplicates come at the end: none meets its first under way")
	}
	again, err := generate(1000, 20)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ids(t, lines), ids(t, again)) {
		t.Error("the same call makes other orders")
	}
}

func ids(t *testing.T, lines []line) (all []string) {
	for _, l := range lines {
		all = append(all, decode(t, l).ID)
	}
	return all
}

func TestGenerateBounds(t *testing.T) {
	for percent, want := range map[float64]int{0: 10, 10: 11, 100: 20} {
		lines, err := generate(10, percent)
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) != want {
			t.Errorf("10 orders and %v %% make %d lines, want %d", percent, len(lines), want)
		}
	}
}

func TestReadLines(t *testing.T) {
	const text = "{\"order_id\":\"A1\"}\nnot json\n\n{\"order_id\":\"A2\"}"
	path := filepath.Join(t.TempDir(), "orders.ndjson")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all := []string{`{"order_id":"A1"}`, "not json", `{"order_id":"A2"}`}
	for limit, want := range map[int][]string{0: all, 1: all[:1], 2: all[:2], 3: all, 99: all} {
		lines, err := readLines(path, limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range lines {
			got = append(got, string(l.value))
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: read %q, want %q", limit, got, want)
		}
	}
}

func TestReadLinesRefuses(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		filepath.Join(dir, "nothing"): "no such file", empty: "has no lines", dir: "is a directory",
	} {
		if lines, err := readLines(path, 0); err == nil || lines != nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: read %v, %v, want an error that names the file and says %q", path, lines, err, says)
		}
	}
}

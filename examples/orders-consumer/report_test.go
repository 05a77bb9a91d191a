package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestVerdict(t *testing.T) {
	good := result{tally: tally{Orders: 10, Applied: 4, Duplicates: 3, Conflicts: 2, DeadLetters: 1}, Charges: 4}
	with := func(change func(*result)) result {
		r := good
		change(&r)
		return r
	}
	for _, c := range []struct {
		name string
		r    result
		says string
	}{
		{"all accounted for", good, ""},
		{"charged twice", with(func(r *result) { r.DoubleCharges = 1 }), "1 double charges"},
		{"lost", with(func(r *result) { r.Applied, r.Lost = 3, 1 }), "1 orders lost"},
		{"a line too few", with(func(r *result) { r.Applied = 3 }), "10 lines sent, 9 accounted for"},
		{"applied, not charged", with(func(r *result) { r.Charges = 3 }), "4 orders applied, 3 charges"},
	} {
		err := c.r.verdict()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the verdict is %v, want %q", c.name, err, c.says)
		}
	}
}

// The names and types of --json's object, which other programs read.
func TestJSON(t *testing.T) {
	var out bytes.Buffer
	r := result{tally: tally{1, 2, 3, 4, 5, 6}, counts: counts{7, 8, 9}, Charges: 10, ChargedCents: -11, DoubleCharges: 12, Kills: 99, Seconds: 1.5, RecordsPerSecond: 2.5, Broker: "embedded", Fence: "mem:", Kind: "probed"}
	if err := r.printJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"orders": 1.0, "applied": 2.0, "duplicates": 3.0, "conflicts": 4.0, "dead_letters": 5.0, "lost": 6.0,
		"deliveries": 7.0, "requeued": 8.0, "in_doubt": 9.0, "charges": 10.0, "charged_cents": -11.0, "double_charges": 12.0,
		"seconds": 1.5, "records_per_second": 2.5, "broker": "embedded", "fence": "mem:", "kind": "probed",
	}
	if !maps.Equal(got, want) {
		t.Errorf("--json prints %v, want %v", got, want)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	r := result{tally: tally{Orders: 12000, Applied: 10000, Duplicates: 2000}, ChargedCents: 123456, Kills: 3, Seconds: 12.34, Broker: "embedded", Fence: "mem:", Kind: "probed"}
	if err := r.printTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]string{{"orders", "12000"}, {"applied", "10000"}, {"duplicates", "2000"}, {"kills", "3"}, {"time", "12.3s"}, {"lost", "0"}} {
		if !slices.ContainsFunc(strings.Split(out.String(), "\n"), func(l string) bool {
			return len(strings.Fields(l)) > 1 && slices.Equal(strings.Fields(l)[:2], row)
		}) {
			t.Errorf("the table has no row %v:\n%s", row, &out)
		}
	}
	if !strings.Contains(out.String(), "1234.56 in all") {
		t.Errorf("the sum is missing:\n%s", &out)
	}
}

// A terminal is written over every 100 ms, a file gets a line every 2 s.
func TestProgress(t *testing.T) {
	const rest = " charged of 10 lines, 0 deliveries, 0 requeued, 0 in doubt, 1 kills"
	for _, c := range []struct {
		terminal bool
		every    time.Duration
		want     string
	}{
		{false, 700 * time.Millisecond, "begun\n     3" + rest + "\nover\n"},
		{true, 40 * time.Millisecond, "begun\n\r\x1b[K     3" + rest + "\nover\n"},
		{true, 60 * time.Millisecond, "begun\n\r\x1b[K     2" + rest + "\r\x1b[K     4" + rest + "\nover\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := newProgress(&out)
			if p.terminal {
				t.Fatal("a buffer is taken for a terminal")
			}
			p.terminal = c.terminal
			p.say("begun")
			for booked := range 5 {
				time.Sleep(c.every)
				p.show(booked+1, 10, counts{}, 1)
			}
			p.say("over")
			if got := out.String(); got != c.want {
				t.Errorf("terminal %v, every %v: %q, want %q", c.terminal, c.every, got, c.want)
			}
		})
	}
}

func TestFileIsNoTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if newProgress(f).terminal {
		t.Error("a file is taken for a terminal")
	}
}

package main

import (
	"bytes"
	"errors"
	"flag"
	"reflect"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	plain := flags{orders: 10000, duplicates: 20, crashes: 3, faults: 5, kind: "idempotent", members: 1}
	with := func(change func(*flags)) flags {
		f := plain
		change(&f)
		return f
	}
	for args, want := range map[string]flags{
		"":                  plain,
		"--orders 5 --keep": with(func(f *flags) { f.orders, f.keep = 5, true }),
		"--duplicates 0":    with(func(f *flags) { f.duplicates = 0 }),
		"--duplicates 12.5": with(func(f *flags) { f.duplicates = 12.5 }),
		"--input x":         with(func(f *flags) { f.input, f.orders, f.duplicates = "x", 0, 0 }),
		"--input x --orders 10000 --duplicates 0": with(func(f *flags) { f.input, f.duplicates = "x", 0 }),
		"--fence mem:":                     with(func(f *flags) { f.fence, f.crashes = "mem:", 0 }),
		"--fence mem: --crashes 0":         with(func(f *flags) { f.fence, f.crashes = "mem:", 0 }),
		"--fence bolt:/x --crashes 0":      with(func(f *flags) { f.fence, f.crashes = "bolt:/x", 0 }),
		"--fence redis://h:1/2 --faults 0": with(func(f *flags) { f.fence, f.faults = "redis://h:1/2", 0 }),
		"--brokers a:1,b:2":                with(func(f *flags) { f.brokers = []string{"a:1", "b:2"} }),
		"--kind at-most-once --members 6":  with(func(f *flags) { f.kind, f.members = "at-most-once", 6 }),
		"--kind probed --json":             with(func(f *flags) { f.kind, f.json = "probed", true }),
	} {
		got, err := parseFlags(strings.Fields(args), &bytes.Buffer{})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", args, got, err, want)
		}
	}
}

func TestFlagsRefused(t *testing.T) {
	for args, says := range map[string]string{
		"--nope":                     "not defined: -nope; --help",
		"--orders x":                 `invalid value "x" for flag -orders`,
		"orders":                     `unexpected argument "orders"`,
		"--orders 0":                 "--orders is 0",
		"--orders -3":                "--orders is -3",
		"--input x --orders 0":       "--orders is 0",
		"--duplicates -1":            "from 0 to 100",
		"--duplicates 101":           "from 0 to 100",
		"--input x --duplicates 20":  "with --input it must be 0",
		"--faults 100.5":             "--faults is 100.5",
		"--crashes -1":               "--crashes is -1",
		"--fence mem: --crashes 1":   "forgets everything",
		"--members 0":                "from 1 to 6",
		"--members 7":                "from 1 to 6",
		"--kind exactly-once":        `unknown kind "exactly-once": use idempotent, probed or at-most-once`,
		"--brokers a:1,,b:2":         "--brokers is",
		"--fence fence.db":           "use mem:, bolt:PATH",
		"--fence http://me:secret@x": "--fence is http://me@x",
	} {
		_, err := parseFlags(strings.Fields(args), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one sentence that says %q", args, err, says)
		}
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	if _, err := parseFlags([]string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help answers %v", err)
	}
	for _, name := range []string{"brokers", "fence", "input", "orders", "duplicates", "crashes", "faults", "kind", "members", "keep", "json"} {
		if !strings.Contains(out.String(), "  -"+name) {
			t.Errorf("--help does not tell of --%s:\n%s", name, &out)
		}
	}
	if strings.Contains(out.String(), "default -1") {
		t.Errorf("--help shows a default that is none:\n%s", &out)
	}
}

// A bolt file is for one process, and memory dies with it: their members share
// a child. Of Redis each member has its own.
func TestMembersOfAChild(t *testing.T) {
	for fence, own := range map[string]bool{"mem:": false, "bolt:/x": false, "redis://h:1": true} {
		if got := ownProcess(fence); got != own {
			t.Errorf("%s: a process for each member: %v, want %v", fence, got, own)
		}
		r := run{fenceURL: fence, broker: &broker{}, provider: &provider{}}
		r.members = 4
		want := 4
		if own {
			want = 1
		}
		if got := r.settings(2); got.Members != want || got.Instance != "orders-consumer-2" {
			t.Errorf("%s: the child runs %d members as %s, want %d", fence, got.Members, got.Instance, want)
		}
	}
}

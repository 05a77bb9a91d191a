package driver_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncefence/oncefence/fence/driver"
)

var update = flag.Bool("update", false, "write testdata/records.golden anew; only for a new format version")

func TestRecordRoundTrip(t *testing.T) {
	for name, r := range samples() {
		packed := driver.AppendRecord([]byte("before"), &r)
		if !bytes.HasPrefix(packed, []byte("before")) {
			t.Errorf("%s: what stood before is gone", name)
		}
		got, err := driver.ParseRecord(packed[len("before"):])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !same(got, r) {
			t.Errorf("%s:\n got %.600q\nwant %.600q", name, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", r))
		}
	}
}

// TestRecordGolden holds the stored form still: what an older release wrote
// stays readable.
func TestRecordGolden(t *testing.T) {
	path := filepath.Join("testdata", "records.golden")
	all := samples()
	delete(all, "done-extreme") // long
	var now strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := all[name]
		fmt.Fprintf(&now, "%s %s\n", name, hex.EncodeToString(driver.AppendRecord(nil, &r)))
	}
	if *update {
		if err := os.WriteFile(path, []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if now.String() != string(golden) {
		t.Errorf("the packed form changed:\n%s\nwas\n%s", now.String(), golden)
	}
	for line := range strings.Lines(string(golden)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		packed, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := driver.ParseRecord(packed); err != nil || !same(r, all[name]) {
			t.Errorf("%s: read as %+v, %v", name, r, err)
		}
	}
}

func TestRecordBeginsForAPerson(t *testing.T) {
	for name, want := range map[string]string{"released": "released", "done": "done:0123456789abcdef0123456789abcdef", "requeued": "requeued", "dead": "dead", "pending": "pending"} {
		r := samples()[name]
		if first, _, _ := bytes.Cut(driver.AppendRecord(nil, &r), []byte{0}); string(first) != want {
			t.Errorf("%s begins with %q", name, first)
		}
	}
}

func TestRecordSize(t *testing.T) {
	r := samples()["done"]
	if n := len(driver.AppendRecord(nil, &r)); n > 125 {
		t.Errorf("a sealed record has %d bytes", n)
	}
}

func TestParseRefuses(t *testing.T) {
	all := samples()
	pack := func(name string, change func(r *driver.Record)) []byte {
		r := all[name]
		change(&r)
		return driver.AppendRecord(nil, &r)
	}
	set := func(name string, at int, b byte) []byte {
		p := pack(name, func(*driver.Record) {})
		p[bytes.IndexByte(p, 0)+1+at] = b
		return p
	}
	keep := func(*driver.Record) {}
	prior := all["requeued"]
	withPrior := prior
	withPrior.State, withPrior.Prior = driver.Pending, &prior
	for name, data := range map[string][]byte{
		"nothing":               nil,
		"no zero byte":          []byte("pending"),
		"unknown state":         append([]byte("asleep"), set("dead", 0, 1)[4:]...),
		"a newer version":       set("pending", 0, driver.FormatVersion+1),
		"version 0":             set("done", 0, 0),
		"unknown flags":         set("requeued", 25, 4),
		"unknown verdict":       set("pending", 27, 3),
		"no effect id":          pack("done", func(r *driver.Record) { r.EffectID = "" }),
		"a long effect id":      pack("done", func(r *driver.Record) { r.EffectID = strings.Repeat("x", driver.MaxEffectID+1) }),
		"a control character":   pack("done", func(r *driver.Record) { r.EffectID = "a\nb" }),
		"sealed before time":    pack("done", func(r *driver.Record) { r.SealedAt = -1 }),
		"kept too long":         pack("done", func(r *driver.Record) { r.Expire = -1 }),
		"bytes after requeued":  append(pack("requeued", keep), 0),
		"bytes after released":  append(pack("released", keep), 1, 2, 3),
		"a prior of a prior":    pack("pending", func(r *driver.Record) { r.Prior = &withPrior }),
		"a prior that is cut":   pack("pending-retry", keep)[:len(pack("pending-retry", keep))-1],
		"a prior under dead":    pack("dead", func(r *driver.Record) { r.Prior = &prior }),
		"a tail that is longer": set("pending", 129, 0xff),
	} {
		if r, err := driver.ParseRecord(data); !errors.Is(err, driver.ErrUnreadable) || !same(r, driver.Record{}) {
			t.Errorf("%s: read as %+v, error %v", name, r, err)
		}
	}
}

func TestParseRefusesEveryCut(t *testing.T) {
	for name, r := range samples() {
		packed := driver.AppendRecord(nil, &r)
		end := len(packed)
		if r.State == driver.Done { // its receipt and seal time are what is at the end
			end = bytes.IndexByte(packed, 0) + 1 + 27 + 8
		}
		for n := range end {
			if r.Prior != nil && n == len(packed)-priorLen(r.Prior) {
				continue // cut exactly before the prior record: whole, without it
			}
			if got, err := driver.ParseRecord(packed[:n]); !errors.Is(err, driver.ErrUnreadable) {
				t.Errorf("%s cut to %d of %d bytes: %+v, %v", name, n, len(packed), got, err)
				break
			}
		}
	}
}

func priorLen(r *driver.Record) int { return len(driver.AppendRecord(nil, r)) }

func TestParseSharesNoMemory(t *testing.T) {
	for _, name := range []string{"done", "pending-retry"} {
		r := samples()[name]
		packed := driver.AppendRecord(nil, &r)
		got, err := driver.ParseRecord(packed)
		if err != nil {
			t.Fatal(err)
		}
		clear(packed)
		if !same(got, r) {
			t.Errorf("%s changed with the bytes that it was read from", name)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, r := range samples() {
		if len(r.Receipt) < 1000 {
			f.Add(driver.AppendRecord(nil, &r))
		}
	}
	f.Add([]byte("done:x\x00\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := driver.ParseRecord(data)
		if err != nil {
			if !errors.Is(err, driver.ErrUnreadable) || !same(r, driver.Record{}) {
				t.Fatalf("%+v, %v", r, err)
			}
			return
		}
		again, err := driver.ParseRecord(driver.AppendRecord(nil, &r))
		if err != nil || !same(again, r) {
			t.Fatalf("read again as %+v, %v\nbefore %+v", again, err, r)
		}
	})
}

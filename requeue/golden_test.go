package requeue

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

var update = flag.Bool("update", false, "rewrite the golden files of a new format version")

// sampleOrigin and sampleRecord are the original that the golden copies carry.
var (
	sampleOrigin = Origin{
		Topic: "orders", Partition: 3, Offset: 9007199254740993, LeaderEpoch: 7,
		TopicID:   [16]byte{0x0a, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff},
		Timestamp: time.Date(2026, 2, 3, 4, 5, 6, 78_900_000, time.UTC),
	}
	sampleRecord = driver.Record{
		Topic: "orders", Partition: 3, Offset: 9007199254740993, LeaderEpoch: 7, TopicID: sampleOrigin.TopicID,
		Key: []byte("customer-1"), Value: []byte{0xff, 0x00, '{'},
		Headers: []driver.Header{
			{Key: "traceparent", Value: []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")},
			{Key: "twice", Value: []byte("a")},
			{Key: "twice", Value: nil},
			{Key: "empty", Value: []byte{}},
			{Key: "oncefence-key", Value: []byte("the user's own")},
			{Key: "user-OnceFence-x", Value: []byte{0xfe}},
		},
	}
)

var goldenCopies = []struct {
	file  string
	copy  Copy
	topic string
	max   int
}{
	{"retry", Copy{
		KeyText: "orders:3:customer-1:order%3A17", Namespace: "%-:billing", Attempt: 2, Step: 1,
		Delay: 1043 * time.Millisecond, Origin: sampleOrigin, FirstSeen: time.Date(2026, 2, 3, 4, 5, 7, 1_000_000, time.UTC),
		Reason: "temporary", Class: "http_503", Error: "POST /charges: 503 \"busy\"\nГотово", Fingerprint: "1:00112233445566778899aabbccddeeff",
	}, "orders.billing.retry.1s", 0},
	{"conflict", Copy{
		KeyText: "orders:3:customer-1:order%3A17", Namespace: "acme:billing", Attempt: 1, Origin: sampleOrigin,
		Reason: "conflict", Fingerprint: "1:00112233445566778899aabbccddeeff", OtherFingerprint: "1:ffeeddccbbaa99887766554433221100",
	}, "orders.billing.dlq", 0},
	{"poison", Copy{
		Namespace: "%-:billing", Origin: Origin{Topic: "orders", Partition: 3, Offset: 9007199254740993, LeaderEpoch: -1}, Reason: "poison",
	}, "orders.billing.dlq", 0},
	{"pointer", Copy{
		KeyText: "orders:3:customer-1:order%3A17", Namespace: "%-:billing", Attempt: 4, Step: 3, Origin: sampleOrigin,
		FirstSeen: time.Date(2026, 2, 3, 4, 5, 7, 0, time.UTC), Reason: "retries used up", Error: "too slow", Fingerprint: "1:00112233445566778899aabbccddeeff",
	}, "orders.billing.dlq", 1000},
}

// What is on disk was written by a release that is out: it must never change.
func TestFormatIsFixed(t *testing.T) {
	for _, g := range goldenCopies {
		carrier := sampleRecord
		if g.max > 0 {
			carrier.Value = make([]byte, g.max)
		}
		rec, err := Encode(g.copy, carrier, g.topic, g.max)
		if err != nil {
			t.Errorf("%s: %v", g.file, err)
			continue
		}
		got := dump(rec)
		path := filepath.Join("testdata", "v1-"+g.file+".txt")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the format changed\n%s\nwant\n%s", g.file, got, want)
		}
		c, _, err := Decode(rec)
		if err != nil {
			t.Errorf("%s: %v", g.file, err)
		}
		said := g.copy.normal()
		if g.max > 0 {
			said.Pointer, said.Omitted = true, "value"
		}
		if c != said {
			t.Errorf("%s: read back\n%+v, want\n%+v", g.file, c, said)
		}
	}
}

// dump writes a record so that every byte of it shows.
func dump(rec driver.Record) []byte {
	var b bytes.Buffer
	text := func(v []byte) string {
		if v == nil {
			return "nil"
		}
		return fmt.Sprintf("%+q", v)
	}
	fmt.Fprintf(&b, "topic %s\nkey %s\nvalue %s\n", rec.Topic, text(rec.Key), text(rec.Value))
	for _, h := range rec.Headers {
		fmt.Fprintf(&b, "%+q = %s\n", h.Key, text(h.Value))
	}
	return b.Bytes()
}

package requeue

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

// sampleCopy is a full copy of sampleRecord.
func sampleCopy() Copy { return goldenCopies[0].copy }

func mustEncode(t *testing.T, c Copy, carrier driver.Record, maxBytes int) driver.Record {
	t.Helper()
	rec, err := Encode(c, carrier, "orders.billing.retry.1s", maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func mustDecode(t *testing.T, rec driver.Record) (Copy, []driver.Header) {
	t.Helper()
	c, user, err := Decode(rec)
	if err != nil {
		t.Fatal(err)
	}
	return c, user
}

// sameHeaders compares names, bytes and nil, in order.
func sameHeaders(a, b []driver.Header) bool {
	return slices.EqualFunc(a, b, func(x, y driver.Header) bool {
		return x.Key == y.Key && bytes.Equal(x.Value, y.Value) && (x.Value == nil) == (y.Value == nil)
	})
}

func TestCopiesCarryTheOriginalUnchangedAndDoNotGrow(t *testing.T) {
	carrier, c := sampleRecord, sampleCopy()
	var first driver.Record
	for attempt := range uint32(9) {
		c.Attempt, c.Step = attempt+1, attempt
		rec := mustEncode(t, c, carrier, 0)
		if !bytes.Equal(rec.Key, sampleRecord.Key) || !bytes.Equal(rec.Value, sampleRecord.Value) {
			t.Fatalf("attempt %d: key or value changed", attempt)
		}
		read, user := mustDecode(t, rec)
		if read != c.normal() {
			t.Fatalf("attempt %d: read back\n%+v, want\n%+v", attempt, read, c.normal())
		}
		if !sameHeaders(user, sampleRecord.Headers) {
			t.Fatalf("attempt %d: user headers %q, want %q", attempt, user, sampleRecord.Headers)
		}
		if attempt == 0 {
			first = rec
		}
		if Size(rec) != Size(first) {
			t.Fatalf("attempt %d: %d bytes, the first copy has %d", attempt, Size(rec), Size(first))
		}
		seen := map[string]int{}
		for _, h := range rec.Headers {
			if seen[h.Key]++; seen[h.Key] > 1 && strings.HasPrefix(h.Key, "oncefence-") {
				t.Fatalf("attempt %d: header %s twice", attempt, h.Key)
			}
		}
		rec.Partition, rec.Offset = 1, int64(attempt) // as it comes back from the broker
		carrier, c = rec, read
	}
}

func TestNilStaysNil(t *testing.T) {
	for _, c := range []struct {
		name       string
		key, value []byte
	}{
		{"nil key and value", nil, nil},
		{"empty key and value", []byte{}, []byte{}},
		{"tombstone", []byte("k"), nil},
	} {
		carrier := driver.Record{Topic: "orders", Partition: 3, Offset: sampleOrigin.Offset, Key: c.key, Value: c.value}
		rec := mustEncode(t, sampleCopy(), carrier, 0)
		if (rec.Key == nil) != (c.key == nil) || (rec.Value == nil) != (c.value == nil) {
			t.Errorf("%s: became key %q, value %q", c.name, rec.Key, rec.Value)
		}
		if IsPointer(rec) {
			t.Errorf("%s: is a pointer", c.name)
		}
	}
}

func TestUserHeadersThatLookLikeOurs(t *testing.T) {
	names := []string{
		"oncefence-version", "oncefence-", "OnceFence-Key", "user-oncefence-key", "user-user-oncefence-key", "user-ONCEFENCE-",
		"user-", "user-x", "oncefence", "x-oncefence-key", "User-oncefence-key", "", "user-user-", "user-userx-oncefence-y",
	}
	var headers []driver.Header
	for _, name := range names {
		headers = append(headers, driver.Header{Key: name, Value: []byte("mine")})
	}
	carrier := sampleRecord
	carrier.Headers = headers
	first := mustEncode(t, sampleCopy(), carrier, 0)
	c, user := mustDecode(t, first)
	if !sameHeaders(user, headers) {
		t.Errorf("after one copy\n%q, want\n%q", user, headers)
	}
	first.Offset = 77
	if _, user := mustDecode(t, mustEncode(t, c, first, 0)); !sameHeaders(user, headers) {
		t.Errorf("after two copies\n%q, want\n%q", user, headers)
	}
}

// A copy that cannot be believed is dead-lettered as a record of its own: what
// it says about itself is kept as evidence and means nothing.
func TestPoisonOnARetryTopicKeepsItsHeadersAsTheUsers(t *testing.T) {
	carrier := driver.Record{Topic: "orders.billing.retry.1s", Partition: 2, Offset: 5, Headers: []driver.Header{{Key: "oncefence-namespace", Value: []byte("someone else")}}}
	c := Copy{Namespace: "%-:billing", Reason: "poison", Origin: Origin{Topic: carrier.Topic, Partition: 2, Offset: 5, LeaderEpoch: -1}}
	read, user := mustDecode(t, mustEncode(t, c, carrier, 0))
	if read.Namespace != "%-:billing" || !sameHeaders(user, carrier.Headers) {
		t.Errorf("namespace %q, user headers %q", read.Namespace, user)
	}
}

func TestTooLargeLosesDiagnosticsThenBecomesAPointer(t *testing.T) {
	carrier := sampleRecord
	carrier.Key = bytes.Repeat([]byte("k"), 300)
	carrier.Value = bytes.Repeat([]byte("v"), 5000)
	full := Size(mustEncode(t, sampleCopy(), carrier, 0))
	last := full
	for _, want := range []struct {
		omitted       string
		diagnostics   bool
		value, header bool
		key           bool
	}{
		{"", true, true, true, true},
		{"", false, true, true, true},
		{"value", true, false, true, true},
		{"value", false, false, true, true},
		{"value,headers", true, false, false, true},
		{"value,headers", false, false, false, true},
		{"value,headers,key", true, false, false, false},
		{"value,headers,key", false, false, false, false},
	} {
		rec := mustEncode(t, sampleCopy(), carrier, last)
		c, user := mustDecode(t, rec)
		if c.Omitted != want.omitted || c.Pointer != (want.omitted != "") || IsPointer(rec) != c.Pointer ||
			(c.Error != "") != want.diagnostics || (c.Class != "") != want.diagnostics ||
			(rec.Value != nil) != want.value || (len(user) > 0) != want.header || (rec.Key != nil) != want.key {
			t.Fatalf("with %d bytes: %+v, want %+v", last, c, want)
		}
		if c.Fingerprint != sampleCopy().Fingerprint || c.Origin != sampleCopy().normal().Origin || c.KeyText != sampleCopy().KeyText || c.Reason == "" {
			t.Fatalf("with %d bytes: the identity is gone: %+v", last, c)
		}
		if Size(rec) > last {
			t.Fatalf("with %d bytes: it has %d", last, Size(rec))
		}
		last = Size(rec) - 1
	}
	_, err := Encode(sampleCopy(), carrier, "orders.billing.dlq", last)
	if !errors.Is(err, driver.ErrTooLarge) || !strings.Contains(err.Error(), "orders.billing.dlq") {
		t.Errorf("with %d bytes: %v, want driver.ErrTooLarge that names the topic", last, err)
	}
}

func TestPointersStayPointers(t *testing.T) {
	carrier := sampleRecord
	carrier.Value = make([]byte, 5000)
	rec := mustEncode(t, sampleCopy(), carrier, 1200)
	rec.Offset = 1
	c, user := mustDecode(t, rec)
	again := mustEncode(t, c, rec, 0)
	if read, headers := mustDecode(t, again); read != c || !sameHeaders(headers, user) || again.Value != nil {
		t.Errorf("a pointer's copy is\n%+v, want\n%+v", read, c)
	}
	c.Omitted = ""
	if read, _ := mustDecode(t, mustEncode(t, c, rec, 0)); read.Omitted != "value" {
		t.Errorf("a pointer that does not say what is left out becomes %q", read.Omitted)
	}
}

func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Copy)
		want  string
	}{
		{"no namespace", func(c *Copy) { c.Namespace = "" }, "namespace"},
		{"raw namespace", func(c *Copy) { c.Namespace = "billing\n" }, "namespace"},
		{"raw key", func(c *Copy) { c.KeyText = "orders:\xff" }, "key text"},
		{"fingerprint", func(c *Copy) { c.Fingerprint = "1:XY" }, "fingerprint"},
		{"other fingerprint", func(c *Copy) { c.OtherFingerprint = "sha256" }, "fingerprint"},
		{"pointer to nothing", func(c *Copy) { c.Pointer, c.Omitted = true, "everything" }, "Omitted"},
	} {
		copied := sampleCopy()
		c.spoil(&copied)
		if _, err := Encode(copied, sampleRecord, "t", 0); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "orders:3:") {
			t.Errorf("%s: %v, want %q and the origin", c.name, err, c.want)
		}
	}
}

func TestRandomCopiesComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	text := func(n int) string {
		b := make([]byte, rng.IntN(n))
		for i := range b {
			b[i] = byte(rng.IntN(256))
		}
		return string(b)
	}
	stamp := func() time.Time {
		if rng.IntN(4) == 0 {
			return time.Time{}
		}
		return time.UnixMilli(rng.Int64() - rng.Int64()).UTC()
	}
	for range 400 {
		c := Copy{
			KeyText: escape(text(20)), Namespace: escape(text(8)) + ":g", Attempt: rng.Uint32(), Step: rng.Uint32N(30),
			Delay: time.Duration(rng.Int64N(int64(MaxDelay))), FirstSeen: stamp(),
			Origin: Origin{Topic: text(12), Partition: int32(rng.Uint32()), Offset: rng.Int64() - rng.Int64(), LeaderEpoch: int32(rng.Uint32()), Timestamp: stamp()},
			Reason: text(300), Class: text(30), Error: text(2000),
		}
		if rng.IntN(2) == 0 {
			c.Origin.TopicID = [16]byte([]byte(text(1) + "0123456789abcdef"))
		}
		carrier := driver.Record{Topic: c.Origin.Topic, Partition: c.Origin.Partition, Offset: c.Origin.Offset, Headers: []driver.Header{{Key: text(10), Value: []byte(text(5))}, {Key: "oncefence-" + text(4)}}}
		read, user := mustDecode(t, mustEncode(t, c, carrier, 0))
		if read != c.normal() || !sameHeaders(user, carrier.Headers) {
			t.Fatalf("read back\n%+v, want\n%+v", read, c.normal())
		}
		if got, err := ParseOrigin(c.Origin.String()); err != nil || got != c.normal().Origin {
			t.Fatalf("origin %s: %+v, %v", c.Origin, got, err)
		}
	}
}

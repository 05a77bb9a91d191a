package requeue

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/oncefence/oncefence/consumer/driver"
)

func TestDecodeIsStrict(t *testing.T) {
	valid := mustEncode(t, sampleCopy(), sampleRecord, 0)
	valid.Topic, valid.Partition, valid.Offset = "orders.billing.retry.1s", 2, 41
	set := func(name, value string) func([]driver.Header) []driver.Header {
		return func(hs []driver.Header) []driver.Header {
			hs = slices.DeleteFunc(hs, func(h driver.Header) bool { return h.Key == name })
			return append(hs, driver.Header{Key: name, Value: []byte(value)})
		}
	}
	without := func(name string) func([]driver.Header) []driver.Header {
		return func(hs []driver.Header) []driver.Header {
			return slices.DeleteFunc(hs, func(h driver.Header) bool { return h.Key == name })
		}
	}
	with := func(h driver.Header) func([]driver.Header) []driver.Header {
		return func(hs []driver.Header) []driver.Header { return append(hs, h) }
	}
	for _, c := range []struct {
		name  string
		spoil func([]driver.Header) []driver.Header
		want  string
	}{
		{"no headers", func([]driver.Header) []driver.Header { return nil }, "oncefence-version is missing"},
		{"no version", without(headerVersion), "oncefence-version is missing"},
		{"no namespace", without(headerNamespace), "oncefence-namespace is missing"},
		{"no attempt", without(headerAttempt), "oncefence-attempt is missing"},
		{"no step", without(headerStep), "oncefence-step is missing"},
		{"no origin", without(headerOrigin), "oncefence-origin is missing"},
		{"doubled", with(driver.Header{Key: headerStep, Value: []byte("1")}), "oncefence-step stands there twice"},
		{"unknown", with(driver.Header{Key: "oncefence-later", Value: []byte("1")}), `"oncefence-later" is unknown`},
		{"look-alike", with(driver.Header{Key: "Oncefence-Step", Value: []byte("1")}), `"Oncefence-Step" is unknown`},
		{"nil", with(driver.Header{Key: headerOtherFingerprint}), `"oncefence-other-fingerprint" is empty`},
		{"empty", set(headerReason, ""), `"oncefence-reason" is empty`},
		{"newer version", set(headerVersion, "2"), "format version"},
		{"no version number", set(headerVersion, "one"), "oncefence-version"},
		{"attempt with zeros", set(headerAttempt, "01"), "oncefence-attempt"},
		{"attempt below zero", set(headerAttempt, "-1"), "oncefence-attempt"},
		{"attempt too large", set(headerAttempt, "4294967296"), "oncefence-attempt"},
		{"step with a sign", set(headerStep, "+1"), "oncefence-step"},
		{"delay in minutes", set(headerDelay, "1m"), "oncefence-delay"},
		{"delay of nothing", set(headerDelay, "0s"), "oncefence-delay"},
		{"key in other letters", set(headerKey, "ключ"), "oncefence-key"},
		{"reason in two lines", set(headerReason, "a\nb"), "oncefence-reason"},
		{"local time", set(headerFirstSeen, "2026-02-03T04:05:07.000+01:00"), "oncefence-first-seen"},
		{"no milliseconds", set(headerFirstSeen, "2026-02-03T04:05:07Z"), "oncefence-first-seen"},
		{"no time", set(headerFirstSeen, "0001-01-01T00:00:00.000Z"), "oncefence-first-seen"},
		{"fingerprint upper case", set(headerFingerprint, "1:AB"), "oncefence-fingerprint"},
		{"fingerprint without scheme", set(headerFingerprint, "abcd"), "oncefence-fingerprint"},
		{"pointer to nowhere", set(headerPointer, "all"), "oncefence-pointer"},
		{"origin with five parts", set(headerOrigin, "orders:3:1:%-:7"), "oncefence-origin"},
		{"origin with seven parts", set(headerOrigin, "orders:3:1:%-:7:%-:x"), "oncefence-origin"},
		{"origin with a raw byte", set(headerOrigin, "or(ders:3:1:%-:7:%-"), "oncefence-origin"},
		{"origin escapes too much", set(headerOrigin, "%6Frders:3:1:%-:7:%-"), "oncefence-origin"},
		{"origin escapes in lower case", set(headerOrigin, "%c3:3:1:%-:7:%-"), "oncefence-origin"},
		{"origin cut in an escape", set(headerOrigin, "a%:3:1:%-:7:%-"), "oncefence-origin"},
		{"origin without topic", set(headerOrigin, "%-:3:1:%-:7:%-"), "oncefence-origin"},
		{"origin partition", set(headerOrigin, "a:x:1:%-:7:%-"), "oncefence-origin"},
		{"origin offset", set(headerOrigin, "a:1:9223372036854775808:%-:7:%-"), "oncefence-origin"},
		{"origin id too long", set(headerOrigin, "a:1:1:000102030405060708090a0b0c0d0e0f10:7:%-"), "oncefence-origin"},
		{"origin id of nothing", set(headerOrigin, "a:1:1:00000000000000000000000000000000:7:%-"), "oncefence-origin"},
		{"origin epoch", set(headerOrigin, "a:1:1:%-::%-"), "oncefence-origin"},
		{"origin time", set(headerOrigin, "a:1:1:%-:7:yesterday"), "oncefence-origin"},
	} {
		rec := valid
		rec.Headers = c.spoil(slices.Clone(valid.Headers))
		_, _, err := Decode(rec)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "partition 2, offset 41") {
			t.Errorf("%s: %v, want %q and where", c.name, err, c.want)
		}
		if newer := c.name == "newer version"; errors.Is(err, ErrVersion) != newer {
			t.Errorf("%s: matches ErrVersion: %v", c.name, !newer)
		}
	}
}

func TestErrorsDoNotQuoteWholeHeaders(t *testing.T) {
	rec := mustEncode(t, sampleCopy(), sampleRecord, 0)
	rec.Headers = append(rec.Headers, driver.Header{Key: headerOtherFingerprint, Value: []byte(strings.Repeat("x", 10_000))})
	if _, _, err := Decode(rec); err == nil || len(err.Error()) > 400 {
		t.Errorf("%v", err)
	}
}

func TestTimestampsThatNoCalendarHas(t *testing.T) {
	c := sampleCopy()
	for ms, want := range map[int64]string{
		-1:                  "1969-12-31T23%3A59%3A59.999Z",
		1_770_000_000_000:   "2026-02-02T02%3A40%3A00.000Z",
		253_402_300_799_999: "9999-12-31T23%3A59%3A59.999Z",
		253_402_300_800_000: "253402300800000",
		1 << 62:             "4611686018427387904", // nanoseconds sent as milliseconds
		-1 << 62:            "-4611686018427387904",
	} {
		c.Origin.Timestamp = cutToMillis(timeOf(ms))
		if text := c.Origin.String(); !strings.HasSuffix(text, ":"+want) {
			t.Errorf("%d ms: %s, want %s at the end", ms, text, want)
		}
		if read, _ := mustDecode(t, mustEncode(t, c, sampleRecord, 0)); read.Origin.Timestamp.UnixMilli() != ms {
			t.Errorf("%d ms came back as %v", ms, read.Origin.Timestamp)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, g := range goldenCopies {
		rec, err := Encode(g.copy, sampleRecord, g.topic, g.max)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(flatten(rec.Headers))
	}
	f.Add([]byte("oncefence-version\x001"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec := driver.Record{Topic: "orders.billing.retry.1s", Offset: -7, Headers: unflatten(data)}
		c, user, err := Decode(rec)
		if err != nil {
			if c != (Copy{}) || user != nil {
				t.Fatal("an error comes with an answer")
			}
			return
		}
		// What was read is written again the same, and read the same.
		again, err := Encode(c, rec, "t", 0)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", c, err)
		}
		if IsPointer(again) != c.Pointer {
			t.Fatalf("pointer: %v", !c.Pointer)
		}
		again.Offset = -8
		read, headers, err := Decode(again)
		if err != nil || read != c.normal() {
			t.Fatalf("written and read again\n%+v (%v), want\n%+v", read, err, c.normal())
		}
		if !c.Pointer && !sameHeaders(headers, user) {
			t.Fatalf("user headers %q, want %q", headers, user)
		}
	})
}

// flatten writes headers as name, zero byte, value, one byte for the end.
func flatten(headers []driver.Header) []byte {
	var b []byte
	for _, h := range headers {
		b = append(append(append(append(b, h.Key...), 0), h.Value...), 1)
	}
	return b
}

func unflatten(data []byte) []driver.Header {
	var headers []driver.Header
	for part := range strings.SplitSeq(string(data), "\x01") {
		if name, value, ok := strings.Cut(part, "\x00"); ok {
			headers = append(headers, driver.Header{Key: name, Value: []byte(value)})
		}
	}
	return headers
}

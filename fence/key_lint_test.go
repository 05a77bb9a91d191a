package fence_test

import (
	"strings"
	"testing"

	"github.com/oncefence/oncefence/fence"
)

func TestLintKey(t *testing.T) {
	cases := []struct {
		id   string
		want string // part of the finding, "" for none
	}{
		{"order-4711", ""},
		{"4711", ""},
		{"5f2c9a7e8b1d4c3f9a7e8b1d4c3f5f2c", ""}, // hash or chance: nobody can tell
		{"2026-05-01", ""},                       // a day is a revision more often than a send time
		{"9999999999", ""},                       // ten digits, but no time of our days
		{"2026-05-01T10:15:00Z", "date with a time"},
		{"2026-05-01 10:15:00.123 +0000 UTC m=+0.01", "date with a time"},
		{"invoice-20260501T101500", "date with a time"},
		{"20260501101500", "date with a time"},
		{"20261301101500", ""},   // month 13
		{"4120260501101512", ""}, // digits in a longer number
		{"1777630500", "Unix seconds"},
		{"order_1777630500123", "Unix milliseconds"},
		{"1777630500123456", "Unix microseconds"},
		{"1777630500123456789", "Unix nanoseconds"},
		{"a1777630500", ""}, // part of a longer word
		{"3d813cbb-47fb-42ba-91df-831e1593ac29", "random UUID (version 4)"},
		{"3D813CBB-47FB-42BA-91DF-831E1593AC29", "random UUID (version 4)"},
		{"0190f6b2-7c3e-7a10-9d2e-5b8f3a1c6d7e", "from a clock (version 7)"},
		{"c232ab00-9414-11ec-b3c8-9f6bdeced846", "from a clock (version 1)"},
		{"2ed6657d-e927-568b-95e1-2665a8aea6a2", ""}, // version 5: from a name
		{"01HZ8Q6Z3V9K7M5T2R4W6Y8B0C", "ULID"},
		{"7ZZZZZZZZZZZZZZZZZZZZZZZZZ", ""}, // a ULID of the year 10889
	}
	for _, c := range cases {
		key := fence.RecordKey(fence.ScopePartition, "orders", 3, fence.Nil, fence.Text(c.id))
		got := fence.LintKey(key.Text())
		switch {
		case c.want == "" && len(got) != 0:
			t.Errorf("%s: %q, want nothing", c.id, got)
		case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want) || !strings.Contains(got[0], "part 4")):
			t.Errorf("%s: %q, want one finding about part 4 with %q", c.id, got, c.want)
		}
	}
}

func TestLintKeyLeavesFallbackIDsAlone(t *testing.T) {
	for _, id := range []fence.Part{fence.OffsetID([16]byte{}, 3, 1777630500), fence.PayloadID(nil), fence.Nil} {
		if got := fence.LintKey(fence.JoinKey(id).Text()); len(got) != 0 {
			t.Errorf("%v: %q, want nothing", id, got)
		}
	}
}

func TestLintKeySaysWhatIsNotCanonical(t *testing.T) {
	got := fence.LintKey("orders:%zz")
	if len(got) != 1 || !strings.Contains(got[0], "part 2, byte 7") {
		t.Errorf("%q, want the error of ParseKey", got)
	}
}

package fence_test

import (
	"strings"
	"testing"

	"github.com/oncefence/oncefence/fence"
)

func TestParseKeySaysWhereAndWhy(t *testing.T) {
	topicID := strings.Repeat("0", 32)
	cases := []struct{ text, where, why string }{
		{"a:%3", "part 2, byte 2", "two upper-case"},
		{"%", "part 1, byte 0", "two upper-case"},
		{"ab%3a", "part 1, byte 2", "two upper-case"},
		{"%2G", "part 1, byte 0", "two upper-case"},
		{"x:y:%41", "part 3, byte 4", `%41 must be written as "A"`},
		{"%20", "part 1, byte 0", `%20 must be written as " "`},
		{"ü", "part 1, byte 0", "0xc3 must be written as %C3"},
		{"a\x00", "part 1, byte 1", "0x00 must be written as %00"},
		{"{a}", "part 1, byte 0", "0x7b must be written as %7B"},
		{"a:b%-", "part 2, byte 3", "two upper-case"},
		{"%-b", "part 1, byte 0", "two upper-case"},
		{"%@", "part 1, byte 0", "an origin offset is"},
		{"%@" + topicID + "/0", "part 1, byte 0", "an origin offset is"},
		{"%@" + topicID + "/0/1/2", "part 1, byte 0", "an origin offset is"},
		{"%@" + topicID + "/00/1", "part 1, byte 0", "an origin offset is"},
		{"%@" + topicID + "/+1/1", "part 1, byte 0", "an origin offset is"},
		{"%@" + topicID + "/-0/1", "part 1, byte 0", "an origin offset is"},
		{"%@" + topicID + "/2147483648/1", "part 1, byte 0", "an origin offset is"},
		{"%@" + topicID + "/0/9223372036854775808", "part 1, byte 0", "an origin offset is"},
		{"%@" + strings.Repeat("A", 32) + "/0/1", "part 1, byte 0", "an origin offset is"},
		{"%@" + topicID[1:] + "/0/1", "part 1, byte 0", "an origin offset is"},
		{"%#" + strings.Repeat("0", 63), "part 1, byte 0", "a payload hash is"},
		{"%#" + strings.Repeat("F", 64), "part 1, byte 0", "a payload hash is"},
		{"%#" + strings.Repeat("g", 64), "part 1, byte 0", "a payload hash is"},
		{"%#", "part 1, byte 0", "a payload hash is"},
		{"%#--", "part 1, byte 0", "a payload hash is"},
	}
	for _, c := range cases {
		parts, err := fence.ParseKey(c.text)
		if err == nil || !strings.Contains(err.Error(), c.where+": ") || !strings.Contains(err.Error(), c.why) {
			t.Errorf("ParseKey(%q) = %v, %v, want an error at %s about %s", c.text, parts, err, c.where, c.why)
		}
		if key, err2 := fence.KeyFromText(c.text); err2 == nil || !key.IsZero() || err2.Error() != err.Error() {
			t.Errorf("KeyFromText(%q) = %v, %v, want ParseKey's error", c.text, key, err2)
		}
	}
}

func TestPartKeepsWhatItIs(t *testing.T) {
	parts := []fence.Part{
		fence.Nil, fence.Text(""), fence.Text("a"), fence.Text("%-"), fence.Text("%#-"),
		fence.PayloadID(nil), fence.PayloadID([]byte{}), fence.OffsetID([16]byte{1}, 0, 0), fence.OffsetID([16]byte{1}, 0, 1),
	}
	for i, p := range parts {
		again, err := fence.ParseKey(p.String())
		if err != nil || len(again) != 1 || !again[0].Equal(p) {
			t.Errorf("ParseKey(%q) = %v, %v, want the part", p, again, err)
		}
		for j, q := range parts {
			if p.Equal(q) != (i == j) {
				t.Errorf("%q.Equal(%q) = %v", p, q, p.Equal(q))
			}
		}
	}
	if !fence.Text("ab").Equal(fence.Bytes([]byte("ab"))) {
		t.Error("a part made from a string is not the one made from its bytes")
	}
	if v := fence.Nil.Value(); v != nil {
		t.Errorf("value of nil is %q", v)
	}
	if v := fence.Bytes([]byte{}).Value(); v == nil || len(v) != 0 {
		t.Errorf("value of empty is %#v", v)
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		"", ":::id", "orders:3:c-1:o-1", "%-", "%25%3A%00%FF", "%41", "%3a", "%@" + strings.Repeat("0", 32) + "/-1/42",
		"%#-", "%#" + strings.Repeat("ab", 32), "{x}", "a b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parts, err := fence.ParseKey(text)
		key, err2 := fence.KeyFromText(text)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%q: ParseKey says %v, KeyFromText says %v", text, err, err2)
		}
		if err != nil {
			return
		}
		if joined := fence.JoinKey(parts...); joined != key || joined.Text() != text {
			t.Fatalf("%q: joined again gives %q", text, joined)
		}
	})
}

package requeue

import (
	"strings"
	"testing"

	"github.com/oncefence/oncefence/consumer/driver"
)

func TestPlainText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"plain: 503 \"busy\" \\", "plain: 503 \"busy\" \\"},
		{"two\nlines\t\x00", `two\nlines\t\x00`},
		{"grüße", `gr\u00fc\u00dfe`},
		{"bad \xff\xc3", `bad \xff\xc3`},
		{"😀", `\U0001f600`},
		{strings.Repeat("x", 30), strings.Repeat("x", 30)},
		{strings.Repeat("x", 31), strings.Repeat("x", 27) + "..."},
		{strings.Repeat("x", 26) + "ü", strings.Repeat("x", 26) + "..."},
		{"ü" + strings.Repeat("x", 24), `\u00fc` + strings.Repeat("x", 24)},
	} {
		got := plainText(c.in, 30)
		if got != c.want {
			t.Errorf("plainText(%q) = %q, want %q", c.in, got, c.want)
		}
		if again := plainText(got, 30); again != got {
			t.Errorf("done again, %q becomes %q", got, again)
		}
	}
}

func TestErrorTextIsBounded(t *testing.T) {
	c := sampleCopy()
	c.Error, c.Reason, c.Class = strings.Repeat("ü", 5000), strings.Repeat("r", 5000), strings.Repeat("\x00", 5000)
	read, _ := mustDecode(t, mustEncode(t, c, sampleRecord, 0))
	if len(read.Error) > MaxErrorText || len(read.Reason) > maxWord || len(read.Class) > maxWord {
		t.Errorf("error %d, reason %d, class %d bytes", len(read.Error), len(read.Reason), len(read.Class))
	}
}

func TestSize(t *testing.T) {
	// Varints of one, two and three bytes, by hand from the format.
	for _, c := range []struct {
		rec  driver.Record
		want int
	}{
		{driver.Record{}, 61 + 1 + 3 + 1 + 1 + 1},
		{driver.Record{Key: []byte{}, Value: []byte{}}, 61 + 1 + 3 + 1 + 1 + 1},
		{driver.Record{Value: make([]byte, 63)}, 61 + 2 + 3 + 1 + (1 + 63) + 1},
		{driver.Record{Value: make([]byte, 64)}, 61 + 2 + 3 + 1 + (2 + 64) + 1},
		{driver.Record{Value: make([]byte, 8192)}, 61 + 3 + 3 + 1 + (3 + 8192) + 1},
		{driver.Record{Headers: []driver.Header{{Key: "ab", Value: []byte("c")}, {Key: "d"}}}, 61 + 1 + 3 + 1 + 1 + 1 + (1 + 2 + 1 + 1) + (1 + 1 + 1)},
	} {
		if got := Size(c.rec); got != c.want {
			t.Errorf("Size = %d, want %d", got, c.want)
		}
	}
}

func TestKindsHaveNames(t *testing.T) {
	for kind, want := range map[Kind]string{SourceTopic: "source", RetryTopic: "retry", DeadLetterTopic: "dead letter", 0: "unknown"} {
		if kind.String() != want {
			t.Errorf("%d is %q", kind, kind)
		}
	}
}

package requeue

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxWord is the longest reason or class in a header, in bytes.
const maxWord = 200

// cutMark ends a text that was cut.
const cutMark = "..."

// plainText makes a text printable ASCII of at most limit bytes: other
// characters become escapes as in Go strings, and a text that is too long ends
// with dots. A text that fits and is printable stays as it is, so doing it again
// changes nothing.
func plainText(s string, limit int) string {
	if len(s) <= limit && isPrintable(s) {
		return s
	}
	var b strings.Builder
	fits := 0 // length of what is left if the rest must be cut
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r >= ' ' && r <= '~':
			b.WriteByte(byte(r))
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
		if b.Len() > limit {
			return b.String()[:fits] + cutMark
		}
		if b.Len() <= limit-len(cutMark) {
			fits = b.Len()
		}
	}
	return b.String()
}

// isPrintable reports whether a text is printable ASCII, spaces included.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// timeLayout is RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// formatTime writes a time to the millisecond. Years that RFC 3339 cannot say
// (a producer that sent microseconds as milliseconds) are written as
// milliseconds since 1970.
func formatTime(t time.Time) string {
	t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return strconv.FormatInt(t.UnixMilli(), 10)
	}
	return t.Format(timeLayout)
}

// parseTime reads what formatTime writes and nothing else.
func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(timeLayout, s)
	if err != nil {
		if ms, numeric := strconv.ParseInt(s, 10, 64); numeric == nil {
			t, err = time.UnixMilli(ms).UTC(), nil
		}
	}
	if err != nil || t.IsZero() || formatTime(t) != s {
		return time.Time{}, fmt.Errorf("%s is not a time as %s", quote(s), timeLayout)
	}
	return t, nil
}

// parseNumber reads a decimal number without sign or leading zeros.
func parseNumber(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0, fmt.Errorf("%s is not a decimal number of 32 bits", quote(s))
	}
	return uint32(n), nil
}

// checkFingerprint accepts "<scheme>:<lower-case hex>", the scheme a decimal
// number, at most 64 bytes of digest.
func checkFingerprint(s string) error {
	scheme, digest, _ := strings.Cut(s, ":")
	_, err := parseNumber(scheme)
	if err != nil || len(digest) == 0 || len(digest) > 128 || len(digest)%2 != 0 || strings.Trim(digest, "0123456789abcdef") != "" {
		return fmt.Errorf("%s is not a fingerprint as 1:<lower-case hexadecimal digits>", quote(s))
	}
	return nil
}

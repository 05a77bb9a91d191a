package fence

import "strings"

// plainBytes are the bytes that stand for themselves in a canonical text.
const plainBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~/@+=,- "

const upperHex = "0123456789ABCDEF"

var plain = func() (table [256]bool) {
	for i := range len(plainBytes) {
		table[plainBytes[i]] = true
	}
	return table
}()

// escapes counts the bytes that do not stand for themselves.
func escapes[S string | []byte](s S) int {
	n := 0
	for i := range len(s) {
		if !plain[s[i]] {
			n++
		}
	}
	return n
}

// escape writes s with every byte that is not plain as % and two upper-case
// hexadecimal digits.
func escape[S string | []byte](b *strings.Builder, s S) {
	for i := range len(s) {
		c := s[i]
		if plain[c] {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
}

// unescape is the inverse of escape. It takes a checked text.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		b.WriteByte(byte(upperDigit(s[i+1])<<4 | upperDigit(s[i+2])))
		i += 2
	}
	return b.String()
}

// upperDigit returns the value of an upper-case hexadecimal digit, or -1.
func upperDigit(c byte) int { return strings.IndexByte(upperHex, c) }

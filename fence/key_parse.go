package fence

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// ParseKey takes a canonical text apart. It is strict: it accepts exactly the
// texts that [JoinKey] makes from one or more parts, so joining the answer
// gives the text again. The error says in which part and at which byte the
// text is not canonical, and why. The empty text is one empty part.
func ParseKey(text string) ([]Part, error) {
	parts := make([]Part, 0, strings.Count(text, ":")+1)
	err := eachPart(text, func(part string, form partForm) {
		switch form {
		case textForm:
			parts = append(parts, Text(unescape(part)))
		case rawForm:
			parts = append(parts, Part{text: part, form: rawForm})
		default:
			parts = append(parts, Part{})
		}
	})
	if err != nil {
		return nil, err
	}
	return parts, nil
}

// eachPart calls yield with each part of a canonical text and its form, and
// stops at the first that JoinKey cannot have made.
func eachPart(text string, yield func(part string, form partForm)) error {
	start := 0
	for n := 1; ; n++ {
		part, _, more := strings.Cut(text[start:], ":")
		form, at, why := checkPart(part)
		if why != "" {
			return fmt.Errorf("key text is not canonical: part %d, byte %d: %s", n, start+at, why)
		}
		yield(part, form)
		if !more {
			return nil
		}
		start += len(part) + 1
	}
}

// checkPart returns the form of one part, or where and why it is none.
func checkPart(s string) (form partForm, at int, why string) {
	switch {
	case s == nilText:
		return nilForm, 0, ""
	case strings.HasPrefix(s, offsetMark):
		return rawForm, 0, checkOffsetID(s[len(offsetMark):])
	case strings.HasPrefix(s, payloadMark):
		return rawForm, 0, checkPayloadID(s[len(payloadMark):])
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case plain[c]:
		case c != '%':
			return 0, i, fmt.Sprintf("byte 0x%02x must be written as %%%02X", c, c)
		case len(s) < i+3 || upperDigit(s[i+1]) < 0 || upperDigit(s[i+2]) < 0:
			return 0, i, "% is not followed by two upper-case hexadecimal digits"
		default:
			if c := byte(upperDigit(s[i+1])<<4 | upperDigit(s[i+2])); plain[c] {
				return 0, i, fmt.Sprintf("%%%02X must be written as %q, the byte itself", c, string(rune(c)))
			}
			i += 2
		}
	}
	return textForm, 0, ""
}

func checkOffsetID(s string) (why string) {
	fields := strings.Split(s, "/")
	if len(fields) != 3 || len(fields[0]) != 32 || !isLowerHex(fields[0]) ||
		!isDecimal(fields[1], 32) || !isDecimal(fields[2], 64) {
		return "an origin offset is " + offsetMark + "<topic id, 32 lower-case hexadecimal digits>/<leader epoch>/<offset>"
	}
	return ""
}

func checkPayloadID(s string) (why string) {
	if s == payloadOfNil || len(s) == 64 && isLowerHex(s) {
		return ""
	}
	return "a payload hash is " + payloadMark + "<64 lower-case hexadecimal digits>, or " + payloadMark + payloadOfNil + " for a nil payload"
}

func isLowerHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && strings.ToLower(s) == s
}

// isDecimal reports whether s is a signed integer as strconv formats it.
func isDecimal(s string, bits int) bool {
	v, err := strconv.ParseInt(s, 10, bits)
	return err == nil && strconv.FormatInt(v, 10) == s
}

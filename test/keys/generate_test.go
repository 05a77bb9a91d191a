// Package keys holds the properties of every key scheme, checked on random
// parts.
package keys

import (
	"strings"

	"pgregory.net/rapid"

	"github.com/oncefence/oncefence/fence"
)

const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~/@+=,- "

// awkward draws strings that are likely to collide if a rule is wrong: short
// ones over the bytes that have a meaning in a canonical text.
func awkward() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringOfN(rapid.RuneFrom([]rune(":%-@#/0aA ")), 0, 4, -1),
		rapid.SampledFrom([]string{"", "%-", "%#-", "%25", "%3A", ":", "::", "\x00", "\xff", "%@" + strings.Repeat("0", 32) + "/0/0", "é", "e\u0301"}),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 12), func(b []byte) string { return string(b) }),
		rapid.String(),
	)
}

// spec is a part by its contents, for comparing without the library.
type spec struct {
	form string // nil, text, offset, payload, payload of nil
	text string
	n    [18]byte // topic id, low bytes of epoch and offset
}

func (s spec) part() fence.Part {
	switch s.form {
	case "nil":
		return fence.Nil
	case "offset":
		return fence.OffsetID([16]byte(s.n[:16]), int32(int8(s.n[16])), int64(s.n[17]))
	case "payload":
		return fence.PayloadID([]byte(s.text))
	case "payload of nil":
		return fence.PayloadID(nil)
	default:
		return fence.Text(s.text)
	}
}

func specs() *rapid.Generator[spec] {
	return rapid.Custom(func(t *rapid.T) spec {
		switch rapid.IntRange(0, 9).Draw(t, "form") {
		case 0, 1:
			return spec{form: "nil"}
		case 2:
			s := spec{form: "offset"}
			for _, i := range []int{0, 15, 16, 17} {
				s.n[i] = rapid.SampledFrom([]byte{0, 1, 255}).Draw(t, "byte")
			}
			return s
		case 3:
			return spec{form: "payload", text: awkward().Draw(t, "value")}
		case 4:
			return spec{form: "payload of nil"}
		default:
			return spec{form: "text", text: awkward().Draw(t, "text")}
		}
	})
}

func partsOf(list []spec) []fence.Part {
	parts := make([]fence.Part, len(list))
	for i, s := range list {
		parts[i] = s.part()
	}
	return parts
}

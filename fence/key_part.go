package fence

import (
	"bytes"
	"strings"
)

// Part is one part of a key: nil, a string of any bytes, or a fallback id made
// by [OffsetID] or [PayloadID]. The zero Part is nil, which is not empty.
type Part struct {
	text  string
	bytes []byte
	form  partForm
}

type partForm uint8

const (
	nilForm   partForm = iota // stands as %-
	textForm                  // Part.text, escaped
	bytesForm                 // Part.bytes, escaped
	rawForm                   // Part.text as it is: %@... or %#...
)

// nilText is the canonical text of a nil part. No escape can make it.
const nilText = "%-"

// Nil is the nil part: a message without a key, no tenant.
var Nil Part

// Text returns the part with the bytes of s, which need not be UTF-8.
func Text(s string) Part { return Part{text: s, form: textForm} }

// Bytes returns the part with these bytes; a nil slice gives the nil part, an
// empty one the empty part. The part refers to b: do not change b before the
// key is made.
func Bytes(b []byte) Part {
	if b == nil {
		return Part{}
	}
	return Part{bytes: b, form: bytesForm}
}

// IsNil reports whether p is the nil part.
func (p Part) IsNil() bool { return p.form == nilForm }

// IsFallback reports whether p was made by [OffsetID] or [PayloadID].
func (p Part) IsFallback() bool { return p.form == rawForm }

// Value returns a copy of the part's bytes before escaping: nil for the nil
// part, the canonical text for a fallback id.
func (p Part) Value() []byte {
	switch p.form {
	case nilForm:
		return nil
	case bytesForm:
		return append([]byte{}, p.bytes...)
	default:
		return append([]byte{}, p.text...)
	}
}

// Equal reports whether p and q stand for the same part, however they were
// made. Nil, empty and fallback parts are all different.
func (p Part) Equal(q Part) bool {
	if p.IsNil() || q.IsNil() || p.IsFallback() != q.IsFallback() {
		return p.form == q.form
	}
	return bytes.Equal(p.Value(), q.Value())
}

// String returns the part's canonical text.
func (p Part) String() string { return joinText([]Part{p}, nil) }

// joinText makes the canonical text of head followed by tail. The text is the
// only allocation: two slices spare the callers an append.
func joinText(head, tail []Part) string {
	n := len(head) + len(tail) - 1
	for i := range head {
		n += head[i].size()
	}
	for i := range tail {
		n += tail[i].size()
	}
	var b strings.Builder
	b.Grow(n)
	for i := range head {
		if i > 0 {
			b.WriteByte(':')
		}
		head[i].write(&b)
	}
	for i := range tail {
		if i > 0 || len(head) > 0 {
			b.WriteByte(':')
		}
		tail[i].write(&b)
	}
	return b.String()
}

func (p *Part) size() int {
	switch p.form {
	case nilForm:
		return len(nilText)
	case textForm:
		return len(p.text) + 2*escapes(p.text)
	case bytesForm:
		return len(p.bytes) + 2*escapes(p.bytes)
	default:
		return len(p.text)
	}
}

func (p *Part) write(b *strings.Builder) {
	switch p.form {
	case nilForm:
		b.WriteString(nilText)
	case textForm:
		escape(b, p.text)
	case bytesForm:
		escape(b, p.bytes)
	default:
		b.WriteString(p.text)
	}
}

package redisfence

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// reader walks the answer of the claim and apply scripts: the clock and mark,
// one code per item, then the bytes that go with some codes.
type reader struct {
	now    int64
	codes  string
	extras []any
}

var errReply = errors.New("the script's answer has another shape than this release expects: unknown whether it was applied")

func newReader(c *chunk) (reader, error) {
	var r reader
	if len(c.reply) < 2 {
		return r, errReply
	}
	r.now = c.now()
	codes, ok := c.reply[1].(string)
	if !ok || len(codes) != len(c.keys) {
		return r, errReply
	}
	r.codes, r.extras = codes, c.reply[2:]
	return r, nil
}

// now is the server's clock in a checked reply.
func (c *chunk) now() int64 {
	return int64(binary.BigEndian.Uint64([]byte(c.reply[0].(string)[:8])))
}

// extra takes the next bytes.
func (r *reader) extra() ([]byte, error) {
	if len(r.extras) == 0 {
		return nil, errReply
	}
	text, ok := r.extras[0].(string)
	r.extras = r.extras[1:]
	if !ok {
		return nil, errReply
	}
	return []byte(text), nil
}

// refused is the error of an item that the server itself refused.
func refused(text []byte) error { return explain(fmt.Errorf("the server refused it: %s", text)) }

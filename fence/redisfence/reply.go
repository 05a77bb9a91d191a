package redisfence

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// errForeignReply would mean that a connection mixes up its answers.
var errForeignReply = errors.New("the reply belongs to another request: unknown whether this one was applied")

var errReply = errors.New("the script's answer has another shape than this release expects: unknown whether it was applied")

// headLen is the length of a reply's first element before the mark: the
// server's clock and the number of keys.
const headLen = 8 + 2

// check makes sure that the reply is this chunk's.
func (c *chunk) check() error {
	if len(c.reply) > 0 {
		head, ok := c.reply[0].(string)
		if ok && len(head) == headLen+len(c.mark) && head[headLen:] == c.mark && int(head[8])<<8|int(head[9]) == len(c.keys) {
			return nil
		}
	}
	return errForeignReply
}

// now is the server's clock in a checked reply.
func (c *chunk) now() int64 {
	return int64(binary.BigEndian.Uint64([]byte(c.reply[0].(string)[:8])))
}

// notice is what a script says of an item that did not go the common way.
type notice struct {
	code  byte // 0: it did
	bytes []byte
}

// notices spreads the notes over the chunk's items; nil when there is none.
func (c *chunk) notices() ([]notice, error) {
	if len(c.reply) == 1 {
		return nil, nil
	}
	out := make([]notice, len(c.keys))
	for _, element := range c.reply[1:] {
		text, ok := element.(string)
		if !ok || len(text) < 3 {
			return nil, errReply
		}
		i := int(text[0])<<8 | int(text[1])
		if i < 1 || i > len(out) || text[2] == 0 || out[i-1].code != 0 {
			return nil, errReply
		}
		out[i-1] = notice{code: text[2], bytes: []byte(text[3:])}
	}
	return out, nil
}

// failure is the error of an item that was refused or could not be read.
func (n notice) failure() error {
	switch n.code {
	case 'u':
		return unreadable(n.bytes)
	case 'e':
		return fmt.Errorf("refused by the server: %s", n.bytes)
	}
	return errReply
}

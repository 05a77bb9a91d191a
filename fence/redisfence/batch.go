package redisfence

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"unsafe"

	"github.com/oncefence/oncefence/fence/driver"
)

// maxKeys bounds one script: 512 keys hold the server for 2 to 3 ms.
const maxKeys = 512

// roomPerItem is what most items take beside their key's names.
const roomPerItem = 180

// chunk is one run of one script.
type chunk struct {
	items []int    // which items of the batch, nil: those from first on
	first int      // of the batch, when items is nil
	keys  []string // slices of one string
	args  []string // behind the keys: what the script takes after the mark
	mark  string   // echoed by the script, so that an answer can never be another's
	reply []any
	err   error
	short error // it ran, and too few replicas confirmed it
}

// item says which item of the batch the chunk's i-th key is.
func (c *chunk) item(i int) int {
	if c.items == nil {
		return c.first + i
	}
	return c.items[i]
}

// cut divides a batch of n items into chunks: as they come on one node, by
// bucket in a cluster, where a script must keep to one slot.
func (s *Store) cut(n int, digest func(int) *driver.Digest) []*chunk {
	var chunks []*chunk
	if !s.byBucket {
		for first := 0; first < n; first += maxKeys {
			c := &chunk{first: first}
			c.keys = make([]string, min(maxKeys, n-first))
			chunks = append(chunks, c)
		}
		return chunks
	}
	open := make(map[int]*chunk, s.buckets)
	for i := range n {
		b := s.bucket(digest(i))
		c := open[b]
		if c == nil || len(c.items) == maxKeys {
			c = &chunk{}
			open[b] = c
			chunks = append(chunks, c)
		}
		c.items = append(c.items, i)
	}
	for _, c := range chunks {
		c.keys = make([]string, len(c.items))
	}
	return chunks
}

// coder writes the two parts of an item: what it mostly has in common with the
// rest of its batch, and the rest.
type coder struct {
	common func(dst []byte, item int) []byte
	body   func(dst []byte, item int) []byte
}

// fill writes the chunk's keys, and its arguments if there is a coder: what the
// items have in common, the bodies and, if they have not all the same in
// common, that of each. All texts share one allocation, which is never written
// again.
func (s *Store) fill(c *chunk, namespace string, digest func(int) *driver.Digest, code *coder) {
	c.mark = newMark()
	n := len(c.keys)
	text := make([]byte, 0, n*(len(keyPrefix)+len(namespace)+digestHex+roomPerItem))
	ends := make([]int, 0, 2*n+1)
	for i := range n {
		text = s.appendKey(text, namespace, digest(c.item(i)))
		ends = append(ends, len(text))
	}
	if code != nil {
		text, ends = c.encode(text, ends, code)
	}
	whole, at := unsafe.String(unsafe.SliceData(text), len(text)), 0
	parts := make([]string, len(ends))
	for i, end := range ends {
		parts[i], at = whole[at:end], end
	}
	c.keys, c.args = parts[:n:n], parts[n:]
}

// encode writes the arguments.
func (c *chunk) encode(text []byte, ends []int, code *coder) ([]byte, []int) {
	from := len(text)
	text = code.common(text, c.item(0))
	size, same := len(text)-from, true
	for i := 1; i < len(c.keys) && same; i++ {
		at := len(text)
		text = code.common(text, c.item(i))
		same = bytes.Equal(text[from:from+size], text[at:])
		text = text[:at]
	}
	if !same {
		text = text[:from]
	}
	ends = append(ends, len(text))
	for i := range c.keys {
		text = code.body(text, c.item(i))
		ends = append(ends, len(text))
	}
	if !same {
		for i := range c.keys {
			text = code.common(text, c.item(i))
			ends = append(ends, len(text))
		}
	}
	return text, ends
}

// split makes a chunk of each key: what a slot that is being moved between
// nodes still takes.
func (c *chunk) split() []*chunk {
	n := len(c.keys)
	parts := make([]*chunk, n)
	for i := range parts {
		parts[i] = &chunk{items: []int{c.item(i)}, keys: c.keys[i : i+1], mark: c.mark}
		if len(c.args) > 0 {
			common := c.args[0]
			if len(c.args) > 1+n {
				common = c.args[1+n+i]
			}
			parts[i].args = []string{common, c.args[1+i]}
		}
	}
	return parts
}

// newMark tells the requests of all processes apart.
func newMark() string {
	var mark [8]byte
	binary.BigEndian.PutUint64(mark[:], rand.Uint64())
	return string(mark[:])
}

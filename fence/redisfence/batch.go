package redisfence

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/oncefence/oncefence/fence/driver"
)

// maxKeys bounds one script: 512 keys hold the server for 2 to 3 ms.
const maxKeys = 512

// chunk is one run of one script.
type chunk struct {
	items []int    // which items of the batch, nil: those from first on
	first int      // of the batch, when items is nil
	keys  []string // slices of one string
	args  []string // one per key, or none
	mark  string   // echoed by the script, so that an answer can never be another's
	reply []any
	err   error
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

// fill writes the chunk's keys, and with encode its arguments. All texts share
// one allocation.
func (s *Store) fill(c *chunk, namespace string, digest func(int) *driver.Digest, encode func([]byte, int) []byte) {
	c.mark = newMark()
	ends := make([]int, 0, 2*len(c.keys))
	text := make([]byte, 0, len(c.keys)*(len(keyPrefix)+len(namespace)+digestHex+300))
	for i := range c.keys {
		text = s.appendKey(text, namespace, digest(c.item(i)))
		ends = append(ends, len(text))
		if encode != nil {
			text = encode(text, c.item(i))
			ends = append(ends, len(text))
		}
	}
	whole, at := string(text), 0
	if encode != nil {
		c.args = make([]string, 0, len(c.keys))
	}
	for i := range c.keys {
		if encode == nil {
			c.keys[i], at = whole[at:ends[i]], ends[i]
			continue
		}
		c.keys[i] = whole[at:ends[2*i]]
		c.args = append(c.args, whole[ends[2*i]:ends[2*i+1]])
		at = ends[2*i+1]
	}
}

// split makes a chunk of each key: what a slot that is being moved between
// nodes still takes.
func (c *chunk) split() []*chunk {
	parts := make([]*chunk, len(c.keys))
	for i := range c.keys {
		p := &chunk{items: []int{c.item(i)}, keys: c.keys[i : i+1], mark: c.mark}
		if c.args != nil {
			p.args = c.args[i : i+1]
		}
		parts[i] = p
	}
	return parts
}

// newMark tells the requests of all processes apart.
func newMark() string {
	var mark [8]byte
	binary.BigEndian.PutUint64(mark[:], rand.Uint64())
	return string(mark[:])
}

package redisfence

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// answer is an error that a server sent.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func TestExplain(t *testing.T) {
	compile := answer("ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'")
	for _, c := range []struct {
		err     error
		cluster bool
		want    string
	}{
		{io.EOF, false, "unknown whether it was applied"},
		{redis.ErrPoolTimeout, false, "unknown whether it was applied"},
		{context.DeadlineExceeded, true, "unknown whether it was applied"},
		{errForeignReply, false, "another request"},
		{compile, false, "Redis 7.0 or Valkey 7.2"},
		{answer("CROSSSLOT Keys in request don't hash to the same slot"), false, "redis.NewClusterClient"},
		{answer("MOVED 3999 127.0.0.1:6381"), false, "redis.NewClusterClient"},
		{answer("MOVED 3999 127.0.0.1:6381"), true, "refused by the server"},
		{answer("READONLY You can't write against a read only replica."), true, "replica"},
		{answer("OOM command not allowed when used memory > 'maxmemory'."), false, "refused by the server"},
	} {
		got := explain(c.err, c.cluster)
		if !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.err, got, c.want)
		}
	}
	if explain(nil, false) != nil {
		t.Error("no error is explained")
	}
}

func reply(elements ...any) *chunk {
	return &chunk{keys: []string{"a", "b"}, mark: "12345678", reply: elements}
}

// A reply that is not this request's, or not of the known shape, is an error and
// never an answer.
func TestReplies(t *testing.T) {
	const head = "\x00\x06\x61\x86\x00\x00\x00\x01" + "\x00\x02" + "12345678"
	for name, c := range map[string]*chunk{
		"none":               reply(),
		"a number":           reply(int64(1)),
		"cut short":          reply(head[:len(head)-1]),
		"another mark":       reply(head[:len(head)-1] + "9"),
		"another item count": reply(strings.Replace(head, "\x00\x02", "\x00\x03", 1)),
	} {
		if err := c.check(); !errors.Is(err, errForeignReply) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]*chunk{
		"a note that is a number": reply(head, int64(1)),
		"a note without a code":   reply(head, "\x00\x01"),
		"a note on item 0":        reply(head, "\x00\x00n"),
		"a note on item 3":        reply(head, "\x00\x03n"),
		"two notes on one item":   reply(head, "\x00\x01n", "\x00\x01n"),
		"a note with code 0":      reply(head, "\x00\x01\x00"),
	} {
		if err := c.check(); err != nil {
			t.Errorf("%s: the head is refused: %v", name, err)
		}
		if _, err := c.notices(); !errors.Is(err, errReply) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := reply(head, "\x00\x02nabc")
	if err := c.check(); err != nil || c.now() != 0x0006618600000001 {
		t.Fatalf("check %v, clock %x", err, c.now())
	}
	got, err := c.notices()
	if err != nil || got[0].code != 0 || got[1].code != 'n' || string(got[1].bytes) != "abc" {
		t.Errorf("notices %v, %v", got, err)
	}
}

// What the items have in common is sent once; when they differ, for each item.
// A split chunk carries the same.
func TestCommonPart(t *testing.T) {
	s := &Store{buckets: 16}
	digests := make([][32]byte, 3)
	for _, differ := range []bool{false, true} {
		c := s.cut(3, nil)[0]
		s.fill(c, "ns", func(i int) *[32]byte { return &digests[i] }, &coder{
			common: func(dst []byte, i int) []byte {
				if differ {
					return append(dst, 'c', byte('0'+i))
				}
				return append(dst, "cc"...)
			},
			body: func(dst []byte, i int) []byte { return append(dst, 'b', byte('0'+i)) },
		})
		want := "cc b0 b1 b2"
		if differ {
			want = " b0 b1 b2 c0 c1 c2"
		}
		if got := strings.Join(c.args, " "); got != want {
			t.Errorf("arguments %q, want %q", got, want)
		}
		last := c.split()[2]
		if want := map[bool]string{false: "cc b2", true: "c2 b2"}[differ]; strings.Join(last.args, " ") != want || last.item(0) != 2 || last.keys[0] != c.keys[2] {
			t.Errorf("split %q item %d", last.args, last.item(0))
		}
	}
}

// A cluster's chunks keep to one bucket, all chunks to 512 keys, and every item
// is in one.
func TestCut(t *testing.T) {
	digests := make([][32]byte, 3000)
	for i := range digests {
		digests[i][0] = byte(i % 3 * 5)
	}
	digest := func(i int) *[32]byte { return &digests[i] }
	for _, byBucket := range []bool{false, true} {
		s := &Store{buckets: 16, byBucket: byBucket}
		seen := make([]int, len(digests))
		for _, c := range s.cut(len(digests), digest) {
			if len(c.keys) > maxKeys {
				t.Errorf("a chunk of %d keys", len(c.keys))
			}
			for i := range c.keys {
				seen[c.item(i)]++
				if byBucket && s.bucket(digest(c.item(i))) != s.bucket(digest(c.item(0))) {
					t.Fatal("a chunk of two buckets")
				}
			}
		}
		for i, n := range seen {
			if n != 1 {
				t.Fatalf("item %d is in %d chunks", i, n)
			}
		}
	}
}

package fence_test

import (
	"testing"

	"github.com/oncefence/oncefence/fence"
)

func TestKeyText(t *testing.T) {
	topicID := [16]byte{0x0a, 15: 0xff}
	cases := []struct {
		name string
		key  fence.Key
		want string
	}{
		{"plain parts stand as they are", fence.JoinKey(fence.Text("orders"), fence.Text("3"), fence.Text("a b")), "orders:3:a b"},
		{"every plain byte", fence.JoinKey(fence.Text("AZaz09._~/@+=,- ")), "AZaz09._~/@+=,- "},
		{"colon, percent, NUL, 0xff", fence.JoinKey(fence.Bytes([]byte(":%\x00\xff"))), "%3A%25%00%FF"},
		{"UTF-8 by bytes", fence.JoinKey(fence.Text("ü€")), "%C3%BC%E2%82%AC"},
		{"braces", fence.JoinKey(fence.Text("{a}")), "%7Ba%7D"},
		{"nil is not empty", fence.JoinKey(fence.Nil, fence.Text(""), fence.Bytes(nil), fence.Bytes([]byte{})), "%-::%-:"},
		{"a text like nil is escaped", fence.JoinKey(fence.Text("%-")), "%25-"},
		{"scope partition", fence.RecordKey(fence.ScopePartition, "orders", 3, fence.Text("c-1"), fence.Text("o-1")), "orders:3:c-1:o-1"},
		{"scope topic", fence.RecordKey(fence.ScopeTopic, "orders", 3, fence.Nil, fence.Text("o-1")), "orders::%-:o-1"},
		{"scope id", fence.RecordKey(fence.ScopeID, "orders", 3, fence.Nil, fence.Text("o-1")), ":::o-1"},
		{"two dedupe parts", fence.RecordKey(fence.ScopePartition, "orders", 0, fence.Text("k"), fence.Text("/shop"), fence.Text("17")), "orders:0:k:/shop:17"},
		{"offset id", fence.RecordKey(fence.ScopePartition, "orders", 0, fence.Nil, fence.OffsetID(topicID, -1, 42)), "orders:0:%-:%@0a0000000000000000000000000000ff/-1/42"},
		{"payload id", fence.JoinKey(fence.PayloadID([]byte{})), "%#e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"payload id of nil", fence.JoinKey(fence.PayloadID(nil)), "%#-"},
		{"general", fence.GeneralKey("git", "acme/docs", "r7", "9f", "embed"), "git:acme/docs:r7:9f:embed"},
		{"event", fence.EventKey("run-1", "step.done", 4), "run-1:step.done:4"},
		{"document", fence.DocumentKey("d:1", "ab12"), "doc:d%3A1:ab12"},
		{"index", fence.IndexKey("ab12"), "index:ab12"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.key.Text(); got != c.want {
				t.Errorf("text %q, want %q", got, c.want)
			}
			again, err := fence.KeyFromText(c.want)
			if err != nil || again != c.key {
				t.Errorf("KeyFromText(%q) = %v, %v, want the same key", c.want, again, err)
			}
		})
	}
}

func TestNoPartsIsNoKey(t *testing.T) {
	for name, key := range map[string]fence.Key{
		"JoinKey without parts":           fence.JoinKey(),
		"RecordKey without a dedupe id":   fence.RecordKey(fence.ScopeID, "orders", 0, fence.Nil),
		"RecordKey with an unknown scope": fence.RecordKey(fence.Scope(9), "orders", 0, fence.Nil, fence.Text("1")),
		"the zero Key":                    {},
	} {
		if !key.IsZero() {
			t.Errorf("%s: %q is not zero", name, key)
		}
	}
	if fence.JoinKey(fence.Text("")).IsZero() {
		t.Error("the key of one empty part is zero")
	}
}

func TestScopeNames(t *testing.T) {
	for _, s := range []fence.Scope{fence.ScopePartition, fence.ScopeTopic, fence.ScopeID} {
		if again, err := fence.ParseScope(s.String()); err != nil || again != s {
			t.Errorf("ParseScope(%q) = %v, %v", s, again, err)
		}
	}
	if _, err := fence.ParseScope("Topic"); err == nil {
		t.Error("ParseScope takes a name that String never gives")
	}
	if got := fence.Scope(7).String(); got != "unknown(7)" {
		t.Errorf("unknown scope prints as %q", got)
	}
}

func TestMakingAKeyAllocatesOnlyItsText(t *testing.T) {
	messageKey, id := []byte("customer-4711"), []byte("0190f6b2-7c3e-4a10-9d2e-5b8f3a1c6d7e")
	long := make([]byte, 4096) // NULs: every byte is escaped
	ns, err := fence.NewNamespace(fence.Text("acme"), "billing")
	if err != nil {
		t.Fatal(err)
	}
	key := fence.RecordKey(fence.ScopePartition, "orders", 11, fence.Bytes(messageKey), fence.Bytes(id))
	longKey := fence.JoinKey(fence.Bytes(long))
	var sinkKey fence.Key
	var sinkText string
	for name, f := range map[string]func(){
		"RecordKey": func() {
			sinkKey = fence.RecordKey(fence.ScopePartition, "orders", 11, fence.Bytes(messageKey), fence.Bytes(id))
		},
		"RecordKey, 2 ids": func() {
			sinkKey = fence.RecordKey(fence.ScopeTopic, "orders", 11, fence.Nil, fence.Text("/shop"), fence.Bytes(id))
		},
		"RecordKey, 12 kB": func() {
			sinkKey = fence.RecordKey(fence.ScopePartition, "orders", 11, fence.Bytes(long), fence.Bytes(id))
		},
		"KeyFromText":     func() { sinkKey, _ = fence.KeyFromText(key.Text()) },
		"EffectID":        func() { sinkText = fence.EffectID(ns, key) },
		"EffectID, 12 kB": func() { sinkText = fence.EffectID(ns, longKey) },
	} {
		if n := testing.AllocsPerRun(100, f); n > 1 {
			t.Errorf("%s: %v allocations, want at most 1", name, n)
		}
	}
	if sinkKey.IsZero() || sinkText == "" {
		t.Error("nothing was made")
	}
}

func BenchmarkRecordKey(b *testing.B) {
	messageKey, id := []byte("customer-4711"), []byte("0190f6b2-7c3e-4a10-9d2e-5b8f3a1c6d7e")
	b.ReportAllocs()
	for b.Loop() {
		fence.RecordKey(fence.ScopePartition, "orders", 11, fence.Bytes(messageKey), fence.Bytes(id))
	}
}

func BenchmarkEffectID(b *testing.B) {
	ns, err := fence.NewNamespace(fence.Text("acme"), "billing")
	if err != nil {
		b.Fatal(err)
	}
	key := fence.RecordKey(fence.ScopePartition, "orders", 11, fence.Text("customer-4711"), fence.Text("o-1"))
	b.ReportAllocs()
	for b.Loop() {
		fence.EffectID(ns, key)
	}
}

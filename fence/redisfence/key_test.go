package redisfence

import (
	"path"
	"strings"
	"testing"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
)

func TestKeys(t *testing.T) {
	s := &Store{buckets: 16}
	d := driver.Digest{0x2b, 31: 0x01}
	const want = "idemp:{%-:orders:11}:2b00000000000000000000000000000000000000000000000000000000000001"
	key := string(s.appendKey(nil, "%-:orders", &d))
	if key != want {
		t.Errorf("key %s, want %s", key, want)
	}
	if back, ok := s.parseKey("%-:orders", key); !ok || back != d {
		t.Errorf("parsed %x, %v", back, ok)
	}
	for _, other := range []string{
		strings.Replace(want, ":11}", ":12}", 1), strings.Replace(want, ":11}", ":011}", 1), strings.Replace(want, "2b", "2B", 1),
		want[:len(want)-1], want + "0", strings.Replace(want, "orders", "order", 1), markerKey("%-:orders"), "",
	} {
		if d, ok := s.parseKey("%-:orders", other); ok {
			t.Errorf("%s was taken for the key of %x", other, d)
		}
	}
}

// The hash tag of a key is the namespace and bucket, whatever tenants and
// groups are called.
func TestHashTag(t *testing.T) {
	s := &Store{buckets: 16}
	for _, name := range []string{"orders", "{a}", "a}b{", "*", "a?[b]\\^", "ü", ""} {
		ns, err := fence.NewNamespace(fence.Text(name), "g"+name)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkNamespace(ns.Text()); err != nil {
			t.Error(err)
		}
		d := driver.Digest{7}
		key := string(s.appendKey(nil, ns.Text(), &d))
		_, rest, _ := strings.Cut(key, "{")
		if tag, _, _ := strings.Cut(rest, "}"); tag != ns.Text()+":7" {
			t.Errorf("%s: hash tag %s", key, tag)
		}
	}
	for _, bad := range []string{"", "a{b", "a}b"} {
		if checkNamespace(bad) == nil {
			t.Errorf("namespace %q passed", bad)
		}
	}
}

// The pattern of a namespace matches its keys, also where a namespace that no
// fence makes holds what patterns are made of.
func TestKeyPattern(t *testing.T) {
	s := &Store{buckets: 16}
	d := driver.Digest{7}
	for _, ns := range []string{"%-:orders", "a*b?c[d]e\\f^g"} {
		key := string(s.appendKey(nil, ns, &d))
		if ok, err := path.Match(keyPattern(ns), key); !ok || err != nil {
			t.Errorf("%s does not match %s: %v", keyPattern(ns), key, err)
		}
	}
	if ok, _ := path.Match(keyPattern("a*"), string(s.appendKey(nil, "ab", &d))); ok {
		t.Error("a star in a namespace matches others")
	}
}

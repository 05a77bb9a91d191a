package keys

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncefence/oncefence/fence"
)

// topics draws topic names as brokers allow them: never empty.
func topics() *rapid.Generator[string] { return rapid.StringMatching(`[a-zA-Z0-9._-]{1,4}`) }

type record struct {
	topic      string
	partition  int32
	messageKey spec
	dedupe     []spec
}

func records() *rapid.Generator[record] {
	return rapid.Custom(func(t *rapid.T) record {
		return record{
			topic:      topics().Draw(t, "topic"),
			partition:  rapid.Int32Range(0, 12).Draw(t, "partition"),
			messageKey: specs().Filter(func(s spec) bool { return s.form == "nil" || s.form == "text" }).Draw(t, "message key"),
			dedupe:     rapid.SliceOfN(specs(), 1, 2).Draw(t, "dedupe"),
		}
	})
}

func (r record) key(scope fence.Scope) fence.Key {
	return fence.RecordKey(scope, r.topic, r.partition, r.messageKey.part(), partsOf(r.dedupe)...)
}

// within reports whether both records are one intent under the scope, if they
// are of the same id.
func (r record) within(scope fence.Scope, o record) bool {
	samePlace := map[fence.Scope]bool{
		fence.ScopePartition: r.topic == o.topic && r.partition == o.partition && r.messageKey == o.messageKey,
		fence.ScopeTopic:     r.topic == o.topic && r.messageKey == o.messageKey,
		fence.ScopeID:        true,
	}
	return samePlace[scope] && slices.Equal(r.dedupe, o.dedupe)
}

func TestRecordKeysAreEqualExactlyWithinTheirScope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := records().Draw(t, "a"), records().Draw(t, "b")
		// Most pairs share most of what they are made of.
		if rapid.Bool().Draw(t, "same id") {
			b.dedupe = a.dedupe
		}
		if rapid.Bool().Draw(t, "same topic") {
			b.topic = a.topic
		}
		if rapid.Bool().Draw(t, "same message key") {
			b.messageKey = a.messageKey
		}
		for _, scope := range []fence.Scope{fence.ScopePartition, fence.ScopeTopic, fence.ScopeID} {
			if (a.key(scope) == b.key(scope)) != a.within(scope, b) {
				t.Fatalf("scope %v: %q and %q", scope, a.key(scope), b.key(scope))
			}
		}
	})
}

func TestScopesAreDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := records().Draw(t, "a"), records().Draw(t, "b")
		if a.key(fence.ScopePartition) == b.key(fence.ScopeTopic) ||
			a.key(fence.ScopeTopic) == b.key(fence.ScopeID) ||
			a.key(fence.ScopeID) == b.key(fence.ScopePartition) {
			t.Fatalf("%v and %v have one key under two scopes", a, b)
		}
	})
}

func TestOtherSchemesAreInjective(t *testing.T) {
	schemes := map[string]struct {
		args int
		key  func(a []string, n int) fence.Key
		n    bool
	}{
		"general":  {5, func(a []string, _ int) fence.Key { return fence.GeneralKey(a[0], a[1], a[2], a[3], a[4]) }, false},
		"event":    {2, func(a []string, n int) fence.Key { return fence.EventKey(a[0], a[1], n) }, true},
		"document": {2, func(a []string, _ int) fence.Key { return fence.DocumentKey(a[0], a[1]) }, false},
		"index":    {1, func(a []string, _ int) fence.Key { return fence.IndexKey(a[0]) }, false},
	}
	for name, s := range schemes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a := rapid.SliceOfN(awkward(), s.args, s.args).Draw(t, "a")
				b := slices.Clone(a)
				if rapid.Bool().Draw(t, "change") {
					b[rapid.IntRange(0, s.args-1).Draw(t, "at")] = awkward().Draw(t, "other")
				}
				steps := rapid.OneOf(rapid.IntRange(-1, 3), rapid.Int())
				m, n := steps.Draw(t, "m"), steps.Draw(t, "n")
				same := slices.Equal(a, b) && (!s.n || m == n)
				ka, kb := s.key(a, m), s.key(b, n)
				if (ka == kb) != same {
					t.Fatalf("%q %d and %q %d: %q and %q", a, m, b, n, ka, kb)
				}
				if again := s.key(slices.Clone(a), m); again != ka {
					t.Fatalf("%q %d: %q, and %q when made again", a, m, ka, again)
				}
			})
		})
	}
}

func TestNamespaceSplitsOneWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tenant := specs().Filter(func(s spec) bool { return s.form == "nil" || s.form == "text" }).Draw(t, "tenant")
		group := awkward().Filter(func(s string) bool { return s != "" }).Draw(t, "group")
		ns, err := fence.NewNamespace(tenant.part(), group)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(ns.Text(), ":") != 1 || strings.ContainsAny(ns.Text(), "{}") {
			t.Fatalf("namespace text %q cannot be split, or not be a hash tag", ns)
		}
		again, err := fence.ParseNamespace(ns.Text())
		if err != nil || again != ns || again.Group() != group || !again.Tenant().Equal(tenant.part()) {
			t.Fatalf("ParseNamespace(%q) = %v, %v", ns, again, err)
		}
	})
}

func TestEffectIDsDifferBetweenNamespacesAndKeys(t *testing.T) {
	type point struct {
		tenant spec
		group  string
		key    fence.Key
	}
	points := rapid.Custom(func(t *rapid.T) point {
		return point{
			tenant: specs().Filter(func(s spec) bool { return s.form == "nil" || s.form == "text" }).Draw(t, "tenant"),
			group:  awkward().Filter(func(s string) bool { return s != "" }).Draw(t, "group"),
			key:    fence.JoinKey(partsOf(rapid.SliceOfN(specs(), 1, 3).Draw(t, "parts"))...),
		}
	})
	id := func(t *rapid.T, p point) string {
		ns, err := fence.NewNamespace(p.tenant.part(), p.group)
		if err != nil {
			t.Fatal(err)
		}
		return fence.EffectID(ns, p.key)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := points.Draw(t, "a"), points.Draw(t, "b")
		if rapid.Bool().Draw(t, "same key") {
			b.key = a.key
		}
		if rapid.Bool().Draw(t, "same tenant") {
			b.tenant = a.tenant
		}
		ida, idb := id(t, a), id(t, b)
		if len(ida) != 32 || strings.Trim(ida, "0123456789abcdef") != "" {
			t.Fatalf("effect id %q is not 32 lower-case digits", ida)
		}
		if (ida == idb) != (a == b) {
			t.Fatalf("%v and %v: effect ids %s and %s", a, b, ida, idb)
		}
	})
}

func TestFallbackIDsTellWhatTheyStandFor(t *testing.T) {
	values := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 3))
	rapid.Check(t, func(t *rapid.T) {
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		same := bytes.Equal(a, b) && (a == nil) == (b == nil)
		if fence.PayloadID(a).Equal(fence.PayloadID(b)) != same {
			t.Fatalf("payload ids of %#v and %#v: %q and %q", a, b, fence.PayloadID(a), fence.PayloadID(b))
		}
		if fence.FingerprintOf(a).Differs(fence.FingerprintOf(b)) == same {
			t.Fatalf("fingerprints of %#v and %#v", a, b)
		}
		f := fence.FingerprintOf(a)
		if again, err := fence.ParseFingerprint(fence.FormatFingerprint(f)); err != nil || again != f {
			t.Fatalf("fingerprint of %#v: %v, %v", a, again, err)
		}
	})
}

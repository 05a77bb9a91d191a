package keys

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncefence/oncefence/fence"
)

func TestDifferentPartsGiveDifferentTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(specs(), 1, 4).Draw(t, "a")
		b := rapid.SliceOfN(specs(), 1, 4).Draw(t, "b")
		ka, kb := fence.JoinKey(partsOf(a)...), fence.JoinKey(partsOf(b)...)
		if same := slices.Equal(a, b); (ka.Text() == kb.Text()) != same || (ka == kb) != same || (ka.Digest() == kb.Digest()) != same {
			t.Fatalf("parts %q and %q: texts %q and %q", a, b, ka, kb)
		}
	})
}

// Two random lists seldom meet. Here the second is the first, cut in another
// place: what a join without escapes would confuse.
func TestShiftedBordersGiveDifferentTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := awkward().Draw(t, "left") + ":" + awkward().Draw(t, "right")
		i := rapid.IntRange(0, len(all)).Draw(t, "i")
		j := rapid.IntRange(0, len(all)).Draw(t, "j")
		ki := fence.JoinKey(fence.Text(all[:i]), fence.Text(all[i:]))
		kj := fence.JoinKey(fence.Text(all[:j]), fence.Text(all[j:]))
		if (ki == kj) != (i == j) {
			t.Fatalf("%q cut at %d and at %d: %q and %q", all, i, j, ki, kj)
		}
		if whole := fence.JoinKey(fence.Text(all)); whole == ki {
			t.Fatalf("%q whole and cut at %d: both %q", all, i, ki)
		}
	})
}

func TestParseUndoesJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := partsOf(rapid.SliceOfN(specs(), 1, 6).Draw(t, "parts"))
		key := fence.JoinKey(want...)
		got, err := fence.ParseKey(key.Text())
		if err != nil || !slices.EqualFunc(got, want, fence.Part.Equal) {
			t.Fatalf("ParseKey(%q) = %q, %v, want %q", key, got, err, want)
		}
		if again, err := fence.KeyFromText(key.Text()); err != nil || again != key {
			t.Fatalf("KeyFromText(%q) = %q, %v", key, again, err)
		}
		if key.Digest() != sha256.Sum256([]byte(key.Text())) {
			t.Fatalf("digest of %q is not its SHA-256", key)
		}
	})
}

// A text that is taken is made again by its parts; so at most one text stands
// for a list of parts.
func TestParseTakesOnlyWhatJoinMakes(t *testing.T) {
	bits := rapid.SampledFrom([]string{":", "%", "-", "%-", "%#-", "%#", "%@", "%3A", "%3a", "%41", "%00", "a", "A", " ", "é", "\x00", strings.Repeat("0", 32), "/0/0"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(bits, 0, 6).Draw(t, "bits"), "")
		parts, err := fence.ParseKey(text)
		if err == nil && fence.JoinKey(parts...).Text() != text {
			t.Fatalf("ParseKey(%q) = %q, which join to %q", text, parts, fence.JoinKey(parts...))
		}
	})
}

func TestOnlyAllowedBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := fence.JoinKey(partsOf(rapid.SliceOfN(specs(), 1, 4).Draw(t, "parts"))...)
		if rest := strings.Trim(key.Text(), plain+":%#"); rest != "" {
			t.Fatalf("%q holds other bytes from %q on", key, rest)
		}
		for i := range len(key.Text()) {
			if !strings.ContainsRune(plain+":%#", rune(key.Text()[i])) {
				t.Fatalf("%q holds byte 0x%02x", key, key.Text()[i])
			}
		}
		if n := len(key.Hex()); n != 64 || strings.Trim(key.Hex(), "0123456789abcdef") != "" {
			t.Fatalf("digest %q is not 64 lower-case digits", key.Hex())
		}
	})
}

func TestPlainPartsStandAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune(plain))), 1, 5).Draw(t, "texts")
		parts := make([]fence.Part, len(texts))
		for i, s := range texts {
			parts[i] = fence.Bytes([]byte(s))
		}
		if got, want := fence.JoinKey(parts...).Text(), strings.Join(texts, ":"); got != want {
			t.Fatalf("text %q, want %q", got, want)
		}
	})
}

func TestNilIsNotEmptyAtAnyPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := partsOf(rapid.SliceOfN(specs(), 1, 5).Draw(t, "parts"))
		i := rapid.IntRange(0, len(parts)-1).Draw(t, "i")
		parts[i] = fence.Bytes(nil)
		withNil := fence.JoinKey(parts...)
		parts[i] = fence.Bytes([]byte{})
		if withEmpty := fence.JoinKey(parts...); withNil == withEmpty {
			t.Fatalf("nil and empty both give %q", withNil)
		}
	})
}

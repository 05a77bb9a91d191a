package fence

import (
	"crypto/sha256"
	"encoding/hex"
)

// Key names one intended effect. It is made from parts by [JoinKey] and the
// functions built on it, or from a canonical text by [KeyFromText]. Keys are
// comparable: two keys are equal exactly when their parts are.
//
// The zero Key is no key; [Key.IsZero] tells. No store takes it.
type Key struct {
	text   string
	digest [sha256.Size]byte
}

// JoinKey makes the key whose canonical text is the parts joined by colons.
// Bytes that do not stand for themselves are escaped, so different parts never
// give the same text. Without any part it returns the zero Key.
func JoinKey(parts ...Part) Key {
	if len(parts) == 0 {
		return Key{}
	}
	return keyOf(joinText(parts, nil))
}

// KeyFromText makes the key that has this canonical text, as it stands in a
// header. It refuses what [ParseKey] refuses.
func KeyFromText(text string) (Key, error) {
	if err := eachPart(text, func(string, partForm) {}); err != nil {
		return Key{}, err
	}
	return keyOf(text), nil
}

// keyOf takes a text that is known to be canonical.
func keyOf(text string) Key {
	return Key{text: text, digest: sumText(text)}
}

// sumText is the SHA-256 of the texts one after the other. It copies through the
// stack: converting a string to bytes would cost an allocation a key.
func sumText(texts ...string) (sum [sha256.Size]byte) {
	var room [256]byte
	h := sha256.New()
	for _, text := range texts {
		for len(text) > 0 {
			n := copy(room[:], text)
			h.Write(room[:n])
			text = text[n:]
		}
	}
	h.Sum(sum[:0])
	return sum
}

// Text returns the canonical text: ASCII, printable, reversible by [ParseKey].
func (k Key) Text() string { return k.text }

// Digest returns the SHA-256 of the canonical text.
func (k Key) Digest() [sha256.Size]byte { return k.digest }

// Hex returns the digest as 64 lower-case hexadecimal digits.
func (k Key) Hex() string { return hex.EncodeToString(k.digest[:]) }

// IsZero reports whether k is the zero Key. The key of one empty part has an
// empty text too, but is not zero.
func (k Key) IsZero() bool { return k == Key{} }

// String returns the canonical text.
func (k Key) String() string { return k.text }

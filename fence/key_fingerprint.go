package fence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/oncefence/oncefence/fence/driver"
)

// Fingerprint is the digest of a payload, with the scheme that made it. It
// catches one key used for two intents. Scheme 0 is none; digests of different
// schemes are not compared, see [driver.Fingerprint.Differs].
type Fingerprint = driver.Fingerprint

// FingerprintOf digests a payload under scheme 1: the first 16 bytes of its
// SHA-256, and 16 zero bytes for nil, which is not empty.
func FingerprintOf(value []byte) Fingerprint {
	f := Fingerprint{Scheme: 1}
	if value != nil {
		sum := sha256.Sum256(value)
		copy(f.Sum[:], sum[:])
	}
	return f
}

// FormatFingerprint writes a fingerprint as headers and reports carry it: the
// scheme in decimal, a colon, 32 lower-case hexadecimal digits.
func FormatFingerprint(f Fingerprint) string {
	var room [3 + 1 + 32]byte
	text := append(strconv.AppendUint(room[:0], uint64(f.Scheme), 10), ':')
	return string(hex.AppendEncode(text, f.Sum[:]))
}

// ParseFingerprint is the inverse of [FormatFingerprint]. It reads schemes that
// this release does not make, and refuses scheme 0.
func ParseFingerprint(text string) (Fingerprint, error) {
	scheme, sum, _ := strings.Cut(text, ":")
	n, err := strconv.ParseUint(scheme, 10, 8)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != scheme || len(sum) != 32 || !isLowerHex(sum) {
		return Fingerprint{}, fmt.Errorf("fingerprint %q is not <scheme from 1 to 255>:<32 lower-case hexadecimal digits>", text)
	}
	f := Fingerprint{Scheme: uint8(n)}
	if _, err := hex.Decode(f.Sum[:], []byte(sum)); err != nil {
		return Fingerprint{}, fmt.Errorf("fingerprint %q: %w", text, err)
	}
	return f, nil
}

package redisfence

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/oncefence/oncefence/fence/driver"
)

const (
	keyPrefix = "idemp:{"
	digestHex = 2 * len(driver.Digest{})
)

// checkNamespace refuses what would break the hash tag. Texts of
// fence.Namespace never hold a brace.
func checkNamespace(namespace string) error {
	if namespace == "" || strings.ContainsAny(namespace, "{}") {
		return fmt.Errorf("namespace %q cannot stand in a Redis key: it must not be empty nor hold a brace", namespace)
	}
	return nil
}

// bucket is where a digest's record is kept.
func (s *Store) bucket(d *driver.Digest) int { return int(d[0]) % s.buckets }

// appendKey appends idemp:{<namespace>:<bucket>}:<digest>.
func (s *Store) appendKey(dst []byte, namespace string, d *driver.Digest) []byte {
	dst = append(append(dst, keyPrefix...), namespace...)
	dst = strconv.AppendInt(append(dst, ':'), int64(s.bucket(d)), 10)
	return hex.AppendEncode(append(dst, "}:"...), d[:])
}

// parseKey is the inverse of appendKey for one namespace. It answers false for
// keys of other namespaces, of the marker and of anybody else.
func (s *Store) parseKey(namespace, key string) (d driver.Digest, ok bool) {
	rest, ok := strings.CutPrefix(key, keyPrefix+namespace+":")
	if !ok {
		return d, false
	}
	number, digits, ok := strings.Cut(rest, "}:")
	if !ok || len(digits) != digestHex || strings.ToLower(digits) != digits {
		return d, false
	}
	if _, err := hex.Decode(d[:], []byte(digits)); err != nil {
		return d, false
	}
	return d, number == strconv.Itoa(s.bucket(&d))
}

// markerKey is where a namespace's marker is kept.
func markerKey(namespace string) string { return keyPrefix + namespace + ":m}:marker" }

// keyPattern matches the keys of a namespace, and more: parseKey decides.
func keyPattern(namespace string) string {
	var b strings.Builder
	b.WriteString(keyPrefix)
	for i := range len(namespace) {
		if strings.IndexByte(`*?[]\^`, namespace[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(namespace[i])
	}
	b.WriteString(":*}:*")
	return b.String()
}

package fence_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/oncefence/oncefence/fence"
)

// The functions named ported are what somebody would write in another
// language from docs/keys.md. They use nothing of package fence, so that a
// change of both the library and the file is still found.

func portedPart(t *testing.T, part any) string {
	t.Helper()
	switch p := part.(type) {
	case nil:
		return "%-"
	case string:
		return portedEscape([]byte(p))
	case map[string]any:
		if digits, ok := p["hex"].(string); ok {
			return portedEscape(fromHex(t, digits))
		}
		if at, ok := p["offset_id"].(map[string]any); ok {
			return fmt.Sprintf("%%@%s/%s/%s", at["topic_id"], at["leader_epoch"], at["offset"])
		}
		if payload, ok := p["payload_id"]; ok {
			if payload == nil {
				return "%#-"
			}
			return fmt.Sprintf("%%#%x", sha256.Sum256(fromHex(t, payload.(string))))
		}
	}
	t.Fatalf("part %v is in no known notation", part)
	return ""
}

func portedEscape(b []byte) string {
	var text strings.Builder
	for _, c := range b {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		digit := '0' <= c && c <= '9'
		if letter || digit || strings.IndexByte("._~/@+=,- ", c) >= 0 {
			text.WriteByte(c)
		} else {
			fmt.Fprintf(&text, "%%%02X", c)
		}
	}
	return text.String()
}

func portedKey(t *testing.T, parts []any) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = portedPart(t, p)
	}
	return strings.Join(texts, ":")
}

func fromHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type vectorAnswer struct {
	Text, Digest  string
	NamespaceText string `json:"namespace_text"`
	EffectID      string `json:"effect_id"`
}

func (v vectorAnswer) check(t *testing.T, parts, namespace []any) {
	t.Helper()
	text := portedKey(t, parts)
	if text != v.Text || fmt.Sprintf("%x", sha256.Sum256([]byte(text))) != v.Digest {
		t.Errorf("ported text %q does not have the published text %q and digest", text, v.Text)
	}
	key, err := fence.KeyFromText(v.Text)
	if err != nil {
		t.Fatal(err)
	}
	if key.Hex() != v.Digest {
		t.Errorf("%q: digest %s, published %s", v.Text, key.Hex(), v.Digest)
	}
	if namespace == nil {
		return
	}
	nsText := portedKey(t, namespace)
	sum := sha256.Sum256([]byte("oncefence-effect-1:" + nsText + ":" + text))
	if nsText != v.NamespaceText || hex.EncodeToString(sum[:])[:32] != v.EffectID {
		t.Errorf("%q in %q: ported namespace or effect id is not the published one", v.Text, nsText)
	}
	ns, err := fence.ParseNamespace(v.NamespaceText)
	if err != nil {
		t.Fatal(err)
	}
	if id := fence.EffectID(ns, key); id != v.EffectID {
		t.Errorf("%q in %q: effect id %s, published %s", v.Text, ns, id, v.EffectID)
	}
}

// TestPublishedVectors fails when a key of the past would get another name.
// That is never repaired in the file.
func TestPublishedVectors(t *testing.T) {
	file, err := os.Open("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var vectors struct {
		Keys []struct {
			Name      string
			Parts     []any
			Namespace []any
			vectorAnswer
		}
		Records []struct {
			Scope, Topic string
			Partition    int32
			MessageKey   any `json:"message_key"`
			Dedupe       []any
			Namespace    []any
			vectorAnswer
		}
		Named []struct {
			Make string
			Args []string
			vectorAnswer
		}
		Fingerprints []struct {
			Value       *string `json:"value_hex"`
			Fingerprint string
		}
		Refused []struct{ Text, Why string }
	}
	decoder := json.NewDecoder(file)
	decoder.UseNumber()
	if err := decoder.Decode(&vectors); err != nil {
		t.Fatal(err)
	}
	for n, group := range []int{len(vectors.Keys), len(vectors.Records), len(vectors.Named), len(vectors.Fingerprints), len(vectors.Refused)} {
		if group == 0 {
			t.Fatalf("group %d of the vectors is empty", n)
		}
	}

	for _, v := range vectors.Keys {
		t.Run(v.Name, func(t *testing.T) { v.check(t, v.Parts, v.Namespace) })
	}
	for _, v := range vectors.Records {
		t.Run(v.Scope+" "+v.Text, func(t *testing.T) {
			place := map[string][]any{
				"partition": {v.Topic, strconv.Itoa(int(v.Partition)), v.MessageKey},
				"topic":     {v.Topic, "", v.MessageKey},
				"id":        {"", "", ""},
			}[v.Scope]
			v.check(t, append(place, v.Dedupe...), v.Namespace)
		})
	}
	for _, v := range vectors.Named {
		t.Run(v.Make+" "+v.Text, func(t *testing.T) {
			parts := map[string][]any{"document": {"doc"}, "index": {"index"}}[v.Make]
			for _, arg := range v.Args {
				parts = append(parts, arg)
			}
			v.check(t, parts, nil)
		})
	}
	for _, v := range vectors.Fingerprints {
		want, value := "1:"+strings.Repeat("0", 32), []byte(nil)
		if v.Value != nil {
			value = append([]byte{}, fromHex(t, *v.Value)...)
			want = fmt.Sprintf("1:%x", sha256.Sum256(value))[:2+32]
		}
		if got := fence.FormatFingerprint(fence.FingerprintOf(value)); got != v.Fingerprint || want != v.Fingerprint {
			t.Errorf("fingerprint of %x: %s, ported %s, published %s", value, got, want, v.Fingerprint)
		}
	}
	for _, v := range vectors.Refused {
		if _, err := fence.ParseKey(v.Text); err == nil {
			t.Errorf("ParseKey takes %q, though %s", v.Text, v.Why)
		}
	}
}

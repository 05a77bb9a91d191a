package fence_test

import (
	"testing"

	"github.com/oncefence/oncefence/fence"
)

func TestFingerprintTellsPayloadsApart(t *testing.T) {
	values := [][]byte{nil, {}, {0}, []byte("a"), make([]byte, 16)}
	for i, a := range values {
		for j, b := range values {
			if fence.FingerprintOf(a).Differs(fence.FingerprintOf(b)) != (i != j) {
				t.Errorf("payloads %q and %q: Differs is wrong", a, b)
			}
		}
	}
	other := fence.FingerprintOf([]byte("a"))
	other.Scheme = 2
	if fence.FingerprintOf(nil).Differs(other) {
		t.Error("digests of different schemes were compared")
	}
}

func TestFingerprintText(t *testing.T) {
	for _, text := range []string{
		"1:00000000000000000000000000000000", "1:e3b0c44298fc1c149afbf4c8996fb924", "255:0123456789abcdef0123456789abcdef",
	} {
		f, err := fence.ParseFingerprint(text)
		if err != nil || fence.FormatFingerprint(f) != text {
			t.Errorf("ParseFingerprint(%q) = %v, %v", text, f, err)
		}
	}
	for _, text := range []string{
		"", "1", "1:", ":00000000000000000000000000000000", "0:00000000000000000000000000000000",
		"256:00000000000000000000000000000000", "01:00000000000000000000000000000000", "+1:00000000000000000000000000000000",
		"1:0000000000000000000000000000000", "1:000000000000000000000000000000000", "1:0000000000000000000000000000000G",
		"1:0000000000000000000000000000000F", " 1:00000000000000000000000000000000",
	} {
		if f, err := fence.ParseFingerprint(text); err == nil {
			t.Errorf("ParseFingerprint(%q) = %v, want an error", text, f)
		}
	}
}

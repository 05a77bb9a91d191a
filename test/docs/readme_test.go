package docs

import (
	"strings"
	"testing"
)

// The README's minimal consumer is the program that the build compiles, and it
// is short.
func TestMinimalConsumer(t *testing.T) {
	const marker, most = "<!-- minimal consumer -->", 30
	_, after, ok := strings.Cut(read(t, "README.md"), marker)
	if !ok {
		t.Fatalf("README.md has no %s", marker)
	}
	_, after, _ = strings.Cut(after, "```go\n")
	shown, _, ok := strings.Cut(after, "```\n")
	if !ok {
		t.Fatalf("README.md has no Go block after %s", marker)
	}
	const from = "func main"
	_, compiled, ok := strings.Cut(read(t, "examples/minimal/main.go"), from)
	if !ok {
		t.Fatal("examples/minimal/main.go has no main")
	}
	if compiled = from + compiled; shown != compiled {
		t.Errorf("README.md shows\n%s\nexamples/minimal/main.go has\n%s", shown, compiled)
	}
	if n := strings.Count(compiled, "\n"); n > most {
		t.Errorf("the minimal consumer has %d lines, want at most %d", n, most)
	}
}

package deps

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxCost is how many lines the go.sum of a user may have who imports the loop,
// the Kafka source and the Redis store.
const maxCost = 40

// userImports are the folders that this user imports.
var userImports = []string{"consumer", "consumer/kafkasource", "fence/redisfence"}

// TestCost makes a user's module and counts what go mod tidy writes into its
// go.sum. It needs the modules of this repository's go.sum, from the module
// cache or from the proxy.
func TestCost(t *testing.T) {
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := "package main\n"
	for _, folder := range userImports {
		if _, err := os.Stat(filepath.Join(repository, folder)); err != nil {
			t.Fatalf("the user's import is not there: %v", err)
		}
		program += "\nimport _ \"" + module + "/" + folder + "\"\n"
	}
	program += "\nfunc main() {}\n"
	mod := "module example.com/user\n\ngo 1.26.0\n\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + repository + "\n"
	// The sums that are known here need not be asked for again; tidy drops those
	// that the user does not need.
	sums, err := os.ReadFile(filepath.Join(repository, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": mod, "go.sum": string(sums), "main.go": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goCommand(t, dir, "mod", "tidy")
	goCommand(t, dir, "list", "-mod=readonly", "-deps", ".") // what tidy wrote is enough
	left, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(string(left), "\n")
	t.Logf("consumer, kafkasource and redisfence cost a user %d lines of go.sum", lines)
	if lines >= maxCost {
		t.Errorf("%d lines of go.sum, want under %d: a package that users import, or a test beside it, imports something new:\n%s", lines, maxCost, left)
	}
	if !strings.Contains(string(left), "github.com/twmb/franz-go ") || !strings.Contains(string(left), "github.com/redis/go-redis/v9 ") {
		t.Errorf("the user's module needs neither Kafka nor Redis: this test measures nothing:\n%s", left)
	}
}

func goCommand(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s in a user's module: %v: %s", strings.Join(args, " "), err, out)
	}
}

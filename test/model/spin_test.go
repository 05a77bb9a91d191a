package model

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

//go:embed *.pml
var sources embed.FS

// tools returns spin and a C compiler. Without them the test is skipped loudly,
// and fails with CI=true.
func tools(t *testing.T) (spin, cc string) {
	t.Helper()
	var errs [3]error
	spin, errs[0] = exec.LookPath("spin")
	cc, errs[1] = exec.LookPath("gcc")
	if errs[1] != nil {
		cc, errs[1] = exec.LookPath("cc")
	}
	if err := errors.Join(errs[:]...); err != nil {
		words := fmt.Sprintf("SKIPPED FOR LACK OF SPIN OR A C COMPILER: %s: %v (Debian: apt-get install spin gcc libc6-dev)", t.Name(), err)
		if os.Getenv("CI") == "true" {
			t.Fatal(words)
		}
		for path, flag := range map[string]int{"/dev/tty": 0, os.Getenv("ONCEFENCE_SKIPS"): os.O_APPEND | os.O_CREATE} {
			if f, err := os.OpenFile(path, os.O_WRONLY|flag, 0o644); err == nil {
				_, _ = fmt.Fprintln(f, words) // nobody is left to tell
				f.Close()
			}
		}
		t.Skip(words)
	}
	return spin, cc
}

// verdict is what one exhaustive search found.
type verdict struct {
	errors, states, depth int
	taken                 map[string]bool // the options that were taken, as file:line
	output                string
}

// search builds the model with these defines and walks all of it. flags go to
// the verifier, ccFlags to the compiler.
func search(t *testing.T, defines string, ccFlags, flags []string) (verdict, error) {
	t.Helper()
	spin, cc := tools(t)
	dir := t.TempDir()
	names, err := sources.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := sources.ReadFile(name.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name.Name()), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) || errors.Is(t.Context().Err(), context.Canceled) {
			t.Fatalf("%s: %v", name, err)
		}
		if err != nil && name != "./pan" {
			t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	// -o3: one transition for each option, so that they can be counted.
	run(spin, append([]string{"-o3"}, append(strings.Fields(defines), "-a", "claim.pml")...)...)
	run(cc, append([]string{"-w", "-DSAFETY", "-DNOREDUCE", "-DPEG", "-o", "pan", "pan.c"}, ccFlags...)...)
	return read(run("./pan", flags...))
}

var (
	found  = regexp.MustCompile(`depth reached (\d+), errors: (\d+)`)
	stored = regexp.MustCompile(`(?m)^\s*(\d+) states, stored`)
	pegged = regexp.MustCompile(`(?m)^\s*\d+\ttrans\s+\d+ (\w+\.pml:\d+)`)
)

// read makes sense of the verifier's output. Without an error in the model,
// anything less than the whole state space is an error here.
func read(output string) (verdict, error) {
	v := verdict{output: output, taken: make(map[string]bool)}
	head, states := found.FindStringSubmatch(output), stored.FindStringSubmatch(output)
	if head == nil || states == nil {
		return v, fmt.Errorf("the verifier's output has another shape than expected:\n%s", output)
	}
	v.depth, _ = strconv.Atoi(head[1]) // digits
	v.errors, _ = strconv.Atoi(head[2])
	v.states, _ = strconv.Atoi(states[1])
	for _, peg := range pegged.FindAllStringSubmatch(output, -1) {
		v.taken[peg[1]] = true
	}
	for _, want := range []string{"Full statespace search for:", "assertion violations\t+", "invalid end states\t+"} {
		if !strings.Contains(output, want) {
			return v, fmt.Errorf("not a full search with assertions: no %q in\n%s", want, output)
		}
	}
	if v.errors > 0 {
		return v, nil
	}
	for _, cut := range []string{"not completed", "too small", "MEMLIM", "out of memory", "hash table full", "aborting"} {
		if strings.Contains(output, cut) {
			return v, fmt.Errorf("the search was cut off (%s):\n%s", cut, output)
		}
	}
	return v, nil
}

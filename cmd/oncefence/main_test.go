package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files of this package anew")

// goldenDir is absolute: tests may change the folder.
var goldenDir string

// asProgram makes the test binary be the program: the same code in a process
// of its own, without building it a second time.
const asProgram = "ONCEFENCE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	var err error
	if goldenDir, err = filepath.Abs("testdata"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	m.Run()
}

// call runs the program and returns its exit status and output.
func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	// Under the race detector a process sleeps for a second before it exits.
	cmd.Env = append(os.Environ(), asProgram+"=1", "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// golden compares the whole of a call, with times made equal, with a file.
func golden(t *testing.T, name string, args ...string) {
	t.Helper()
	status, stdout, stderr := call(t, args...)
	shown := strings.Join(args, " ")
	got := fmt.Sprintf("exit status %d\n--- stdout\n%s--- stderr\n%s", status, stdout, stderr)
	got = anyTime.ReplaceAllString(got, "(time)")
	path := filepath.Join(goldenDir, name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("oncefence %s\ngot:\n%s\nwant %s:\n%s", shown, got, path, want)
	}
}

var anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)

func TestUsage(t *testing.T) {
	golden(t, "help", "--help")
	golden(t, "unknown-command", "keys")
	golden(t, "key-help", "key", "--help")
	status, stdout, stderr := call(t)
	if status != 2 || stdout != "" || !strings.Contains(stderr, "Commands:") {
		t.Errorf("without arguments: exit status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

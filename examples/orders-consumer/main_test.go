package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

// asMain lets the test binary be the program.
const asMain = "ORDERS_CONSUMER_TEST_MAIN"

func TestMain(m *testing.M) {
	_, child := os.LookupEnv(childEnv)
	if _, program := os.LookupEnv(asMain); child || program {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program is a run of the program with a temporary folder of its own.
type program struct {
	cmd         *exec.Cmd
	temp        string
	out, errors bytes.Buffer
}

func prepare(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{cmd: exec.CommandContext(ctx, self, args...), temp: t.TempDir()}
	p.cmd.Env = append(os.Environ(), asMain+"=1", "TMPDIR="+p.temp)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errors
	return p
}

// run runs the program to its end and fails unless it exits with status.
func (p *program) run(t *testing.T, status int) {
	t.Helper()
	err := p.cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		t.Fatalf("%v: exit status %d, want %d\nstdout: %s\nstderr: %s", p.cmd.Args[1:], got, status, &p.out, &p.errors)
	}
}

// result decodes what --json printed. It fails on anything but one object with
// the fields that it must have.
func (p *program) result(t *testing.T) result {
	t.Helper()
	decoder := json.NewDecoder(&p.out)
	decoder.DisallowUnknownFields()
	var r result
	if err := decoder.Decode(&r); err != nil {
		t.Fatalf("standard output: %v", err)
	}
	if decoder.More() {
		t.Fatal("standard output holds more than one object")
	}
	return r
}

// left returns the names of what lies in the temporary folder.
func (p *program) left(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(p.temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

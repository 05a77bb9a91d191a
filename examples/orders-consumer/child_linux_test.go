package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A parent that is killed takes its consumers along.
func TestParentKilled(t *testing.T) {
	t.Parallel()
	p := prepare(t, "--orders", "5000", "--crashes", "0")
	p.cmd.Stdout = nil
	waitForLine(t, p, "charged of")
	children := childrenOf(t, p.cmd.Process.Pid)
	if len(children) != 1 {
		t.Fatalf("the program has the children %v, want one", children)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	deadline := time.After(10 * time.Second)
	for tick := time.Tick(5 * time.Millisecond); alive(children[0]); {
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("process %d is alive 10 s after its parent was killed", children[0])
		}
	}
}

// stat returns a process's state and parent, "" if there is none.
func stat(pid int) (state string, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold anything
	fields := strings.Fields(rest)
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// alive reports whether a process runs; one that nobody has reaped yet does not.
func alive(pid int) bool {
	state, _ := stat(pid)
	return state != "" && state != "Z" && state != "X"
}

func childrenOf(t *testing.T, parent int) (children []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if _, of := stat(pid); of == parent && alive(pid) {
			children = append(children, pid)
		}
	}
	return children
}

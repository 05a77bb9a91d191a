package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/oncefence/oncefence/fence/boltfence"
)

// Each kind of effect, and each way to run the members, under kills and faults:
// every line ends in one way, none is lost and none charged twice. Nothing is
// left in the temporary folder.
func TestRuns(t *testing.T) {
	const orders, sent = 600, 720
	for name, c := range map[string]struct {
		args    []string
		crashes int
	}{
		"idempotent":   {[]string{"--kind", "idempotent"}, 2},
		"probed":       {[]string{"--kind", "probed"}, 2},
		"at-most-once": {[]string{"--kind", "at-most-once"}, 2},
		"mem":          {[]string{"--fence", "mem:", "--members", "2"}, 0},
		"bolt":         {[]string{"--fence", "bolt:PATH"}, 2},
		"members":      {[]string{"--members", "2"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "fence.db")
			args := []string{"--json", "--orders", "600"}
			if c.crashes > 0 {
				args = append(args, "--crashes", "2")
			}
			for _, a := range c.args {
				args = append(args, strings.Replace(a, "PATH", path, 1))
			}
			p := prepare(t, args...)
			p.run(t, 0)
			r := p.result(t)
			if err := r.verdict(); err != nil {
				t.Error(err)
			}
			if r.Orders != sent || r.Duplicates != sent-orders || r.Conflicts != 0 || r.Applied+r.DeadLetters != orders {
				t.Errorf("%d orders, %d lines: %+v", orders, sent, r)
			}
			if name != "at-most-once" && r.DeadLetters > 6 { // retries that are spent, by chance or on a slow machine
				t.Errorf("%d dead letters", r.DeadLetters)
			}
			if r.Deliveries < sent || r.Requeued == 0 || r.InDoubt == 0 || r.Charges < r.Applied || r.ChargedCents == 0 {
				t.Errorf("with faults: %+v", r)
			}
			if r.Seconds <= 0 || r.RecordsPerSecond <= 0 || r.Broker != "embedded" || r.Kind == "" || r.Fence == "" {
				t.Errorf("what ran: %+v", r)
			}
			if got := strings.Count(p.errors.String(), "killed with SIGKILL"); got != c.crashes {
				t.Errorf("%d kills, want %d:\n%s", got, c.crashes, &p.errors)
			}
			if !strings.Contains(p.errors.String(), "lease 2s, retries after [100ms 500ms 2s], static member ids") {
				t.Errorf("the settings of the demonstration are not told:\n%s", &p.errors)
			}
			if left := p.left(t); len(left) != 0 {
				t.Errorf("left in the temporary folder: %v", left)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("the fence file that the run made is left")
			}
		})
	}
}

// Lines of a file: what does not decode or has no id is a dead letter, other
// content under a known id a conflict, and --orders cuts.
func TestInput(t *testing.T) {
	t.Parallel()
	lines := []string{
		`{"order_id":"A1","customer_id":"c","amount_cents":100}`,
		`{"order_id":"A1","customer_id":"c","amount_cents":100}`,
		`{"order_id":"A1","customer_id":"c","amount_cents":999}`,
		`this is no order`,
		`{"order_id":"","amount_cents":5}`,
		`{"order_id":"A2","amount_cents":-30}`,
		`{"order_id":7}`,
		`{"order_id":"A3","amount_cents":1}`, // cut
	}
	input := filepath.Join(t.TempDir(), "orders.ndjson")
	if err := os.WriteFile(input, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := prepare(t, "--json", "--input", input, "--orders", "7", "--crashes", "1", "--faults", "0")
	p.run(t, 0)
	r := p.result(t)
	want := tally{Orders: 7, Applied: 2, Duplicates: 1, Conflicts: 1, DeadLetters: 3}
	if r.tally != want || r.Charges != 2 || r.ChargedCents != 70 || r.Requeued != 0 {
		t.Errorf("the run ends as %+v, want %+v, 2 charges of 70 cents", r, want)
	}
}

// Without --json the table is the end of standard output.
func TestPlainOutput(t *testing.T) {
	t.Parallel()
	p := prepare(t, "--orders", "50", "--crashes", "0", "--faults", "0", "--keep")
	p.run(t, 0)
	out := p.out.String()
	for _, want := range []string{"broker embedded, fence bolt:", "60 orders sent", "\norders ", "\ndouble charges  0", "kept: fence bolt:"} {
		if !strings.Contains(out, want) {
			t.Errorf("standard output lacks %q:\n%s", want, out)
		}
	}
	if strings.ContainsAny(out, "\r\x1b") {
		t.Errorf("standard output is no terminal and holds control characters:\n%q", out)
	}
	left := p.left(t)
	if len(left) != 1 {
		t.Fatalf("--keep keeps %v, want one folder", left)
	}
	if _, err := os.Stat(filepath.Join(p.temp, left[0], "fence.db")); err != nil {
		t.Error(err)
	}
}

// What is wrong ends the program soon, with a sentence and the status that says
// whose fault it is.
func TestFails(t *testing.T) {
	dir := t.TempDir()
	inUse := filepath.Join(dir, "fence.db")
	fence, err := boltfence.Open(inUse, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fence.Close() }) // behind the parallel subtests
	for name, c := range map[string]struct {
		args   []string
		status int
		says   []string
	}{
		"a wrong flag":       {[]string{"--members", "77"}, 2, []string{"--members is 77"}},
		"no broker":          {[]string{"--brokers", "127.0.0.1:1"}, 1, []string{"--brokers: none of 127.0.0.1:1 answers", "refused"}},
		"no Redis":           {[]string{"--fence", "redis://:secret@127.0.0.1:1"}, 1, []string{"--fence: open fence redis://127.0.0.1:1", "refused"}},
		"a fence in use":     {[]string{"--fence", "bolt:" + inUse}, 1, []string{inUse, "another process"}},
		"a folder not there": {[]string{"--fence", "bolt:" + dir + "/no/fence.db"}, 1, []string{"make its folder"}},
		"a file not there":   {[]string{"--input", dir + "/none", "--keep"}, 1, []string{"--input", dir + "/none"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := prepare(t, c.args...)
			p.run(t, c.status)
			text := p.errors.String()
			for _, says := range c.says {
				if !strings.Contains(text, says) {
					t.Errorf("standard error does not say %q:\n%s", says, text)
				}
			}
			if strings.Count(text, "\n") != 1 || p.out.Len() > 0 || strings.Contains(text, "secret") {
				t.Errorf("want one line on standard error and nothing else:\nstdout: %s\nstderr: %s", &p.out, text)
			}
			if left := p.left(t); len(left) != 0 {
				t.Errorf("left in the temporary folder: %v", left)
			}
		})
	}
}

// An interrupted run ends its consumers and cleans up.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	p := prepare(t, "--orders", "3000")
	p.cmd.Stdout = nil
	waitForLine(t, p, "killed with SIGKILL")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	if status := p.cmd.ProcessState.ExitCode(); status != 1 || !strings.Contains(p.errors.String(), "interrupted") {
		t.Errorf("exit status %d, %s", status, &p.errors)
	}
	if left := p.left(t); len(left) != 0 {
		t.Errorf("left in the temporary folder: %v", left)
	}
}

// waitForLine starts the program and returns when its standard output holds a
// line with text. The rest of the output is read and dropped.
func waitForLine(t *testing.T, p *program, text string) {
	t.Helper()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan bool, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), text) {
				found <- true
				break
			}
		}
		close(found)
		_, _ = io.Copy(io.Discard, out) // until the program ends
	}()
	if !<-found {
		t.Fatalf("the program ended without the line %q: %s", text, &p.errors)
	}
}

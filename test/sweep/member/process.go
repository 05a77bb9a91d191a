package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a running member, as its parent sees it.
type Process struct {
	// Ended is closed when the process has ended and all its events were told.
	Ended chan struct{}
	// At is when it ended and Err how, once Ended is closed.
	At  time.Time
	Err error

	cmd   *exec.Cmd
	stdin io.WriteCloser
}

// Build compiles the program of package path into dir, with fault points, and
// returns the file.
func Build(ctx context.Context, dir, path string) (string, error) {
	program := dir + "/member"
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "faults", "-o", program, path)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build -tags faults %s: %w\n%s", path, err, out)
	}
	return program, nil
}

// Start runs program as a member. fault is what ONCEFENCE_FAULT says, "" for
// nothing. tell gets its events one by one, from one goroutine. The process dies
// with this one.
func Start(program string, cfg Settings, fault string, log io.Writer, tell func(Event)) (*Process, error) {
	raw, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	p := &Process{Ended: make(chan struct{}), cmd: exec.Command(program)} //nolint:noctx // it is ended by its parent's word or death
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(raw), "ONCEFENCE_FAULT="+fault, "GOMAXPROCS=2")
	p.cmd.Stderr = log
	dieWithParent(p.cmd)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		// The kernel ties the death signal to the thread that forked.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		defer close(p.Ended)
		for decoder := json.NewDecoder(stdout); ; {
			var e Event
			if decoder.Decode(&e) != nil { // also a line that was cut by a kill
				break
			}
			tell(e)
		}
		p.At = time.Now()
		p.Err = p.cmd.Wait()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start a member: %w", err)
	}
	return p, nil
}

// Join makes the process run one more member.
func (p *Process) Join() error {
	_, err := io.WriteString(p.stdin, "join\n")
	return err
}

// AskHealth makes the process say on its standard error how its consumers are.
func (p *Process) AskHealth() { _, _ = io.WriteString(p.stdin, "health\n") } // gone already shows in Ended

// AskToStop asks for a clean end and does not wait for it.
func (p *Process) AskToStop() { _, _ = io.WriteString(p.stdin, "stop\n") } // gone already shows in Ended

// Stop ends the process cleanly and returns how it ended.
func (p *Process) Stop() error {
	p.AskToStop()
	<-p.Ended
	return p.Err
}

// Kill ends the process without a word and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // gone already is as good
	<-p.Ended
}

// Signal sends it a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Killed reports whether the process has ended by SIGKILL.
func (p *Process) Killed() bool {
	var exit *exec.ExitError
	if !errors.As(p.Err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

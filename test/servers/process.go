package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// process is a running program. On Linux it dies with this process.
type process struct {
	cmd  *exec.Cmd
	log  string        // file that holds its output
	done chan struct{} // closed when it ended
	err  error         // how it ended, once done is closed
}

// command says what to run and how.
type command struct {
	argv    []string
	env     []string  // added to this process's environment
	dir     string    // working directory
	log     string    // file for standard output and error
	account *account  // whom to run it as; nil is the current user
	orphan  os.Signal // what it gets when this process dies; nil is SIGKILL
}

// startProcess starts a program without waiting for it to be ready.
func startProcess(c command) (*process, error) {
	out, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(c.argv[0], c.argv[1:]...) //nolint:noctx // it outlives the context of its start; Close ends it
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Dir = c.dir
	cmd.Stdout, cmd.Stderr = out, out
	bindLife(cmd, c.orphan, c.account)
	p := &process{cmd: cmd, log: c.log, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel ties the death signal to the thread that forked, so that
		// thread is kept until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.argv[0], err)
	}
	return p, nil
}

// stop sends sig, waits up to grace, then kills. It returns after the end.
func (p *process) stop(sig os.Signal, grace time.Duration) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	_ = p.cmd.Process.Signal(sig) // fails only if it has ended meanwhile
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("%s did not stop within %v of %v and was killed", p.cmd.Path, grace, sig)
}

// finish waits for a program that ends by itself, at most a minute, and tells
// what it said when it failed.
func (p *process) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-p.done:
	case <-ctx.Done():
		_ = p.stop(os.Kill, time.Second)
		return fmt.Errorf("%s: %w", p.cmd.Path, context.Cause(ctx))
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w: %s", p.cmd.Path, p.err, tail(p.log, 2000))
	}
	return nil
}

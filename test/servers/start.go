package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// startTimeout is how long a server may take to answer.
const startTimeout = 60 * time.Second

// programs are the processes of one server and the folder they share.
type programs struct {
	dir  string
	stop os.Signal // asks one of them to end
	all  []*process
}

// close ends the processes together and removes their folder.
func (g *programs) close() error {
	errs := make([]error, len(g.all)+1)
	var wg sync.WaitGroup
	for i, p := range g.all {
		wg.Go(func() { errs[i] = p.stop(g.stop, 10*time.Second) })
	}
	wg.Wait()
	errs[len(g.all)] = os.RemoveAll(g.dir)
	return errors.Join(errs...)
}

// ended returns a process that has ended, or nil.
func (g *programs) ended() *process {
	for _, p := range g.all {
		select {
		case <-p.done:
			return p
		default:
		}
	}
	return nil
}

// startPrograms calls start and waits until ready returns nil. A port that was
// free may be gone a moment later, so programs that end at once are started
// anew with other ports, three times in all. After an error nothing runs and no
// file is left; the error tells the end of the logs.
func startPrograms[S any](ctx context.Context, start func(context.Context) (S, *programs, error), ready func(context.Context, S) error) (S, error) {
	var none S
	var errs []error
	for range 3 {
		s, g, err := start(ctx)
		if err == nil {
			bounded, cancel := context.WithTimeout(ctx, startTimeout)
			err = poll(bounded, g.ended, func(ctx context.Context) error { return ready(ctx, s) })
			cancel()
		}
		if err == nil {
			return s, nil
		}
		errs = append(errs, err)
		if g == nil {
			break
		}
		for _, p := range g.all {
			errs = append(errs, fmt.Errorf("%s said: %s", p.cmd.Path, tail(p.log, 2000)))
		}
		if err := g.close(); err != nil {
			errs = append(errs, err)
		}
		if !errors.Is(err, errEnded) {
			break
		}
	}
	return none, errors.Join(errs...)
}

// errEnded means that a program ended before it was ready.
var errEnded = errors.New("ended before it was ready")

// poll calls ready every 20 ms, each call limited to 2 s, until it returns nil.
// It gives up when the context ends or ended returns a process, and tells the
// last failure.
func poll(ctx context.Context, ended func() *process, ready func(context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("does not answer: %w", errors.Join(context.Cause(ctx), last))
		case <-tick.C:
		}
		if p := ended(); p != nil {
			return fmt.Errorf("%s %w: %w", p.cmd.Path, errEnded, errors.Join(p.err, last))
		}
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := ready(once)
		cancel()
		if err == nil {
			return nil
		}
		if end, ok := ctx.Deadline(); last == nil || !ok || time.Now().Before(end) { // a call that is cut off tells nothing
			last = err
		}
	}
}

// answers waits at most 10 s for a server that others run.
func answers[S any](ctx context.Context, s S, ready func(context.Context, S) error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return poll(ctx, neverEnds, func(ctx context.Context) error { return ready(ctx, s) })
}

// leave is the Close of a server that others run.
func leave() error { return nil }

// neverEnds is for servers that this process did not start as programs.
func neverEnds() *process { return nil }

// tail returns the last n bytes of a file, or why it cannot.
func tail(path string, n int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-n):])
}

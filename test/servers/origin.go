package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// Origin says where a server came from.
type Origin string

// The places where servers are looked for, in this order.
const (
	Address Origin = "address" // named by an environment variable, shared with others
	Docker  Origin = "docker"  // a container started for this process
	Program Origin = "program" // a program of this machine started for this process
)

// ErrMissing is the error when no server of a kind is to be had here at all: no
// address, no Docker or no image, no program. Its text says what to install.
// Any other error means that a server was there and did not work.
var ErrMissing = errors.New("no server found")

// errAbsent marks the error of a way that this machine does not offer.
var errAbsent = errors.New("absent")

func absent(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errAbsent, fmt.Errorf(format, args...))
}

// server is what the three kinds have in common.
type server interface {
	Origin() Origin
	Close() error
	where() string // for people: addresses, no password
}

// way is one way to get a server.
type way[S server] struct {
	origin Origin
	start  func(context.Context) (S, error)
}

// find tries the ways in order and returns the first server that works. from
// restricts it to one way; empty means ONCEFENCE_SERVERS or else all.
func find[S server](ctx context.Context, kind string, from Origin, ways ...way[S]) (S, error) {
	var none S
	if from == "" {
		from = Origin(os.Getenv("ONCEFENCE_SERVERS"))
	}
	switch from {
	case "", Address, Docker, Program:
	default:
		return none, fmt.Errorf("%s: unknown origin %q: use %s, %s or %s", kind, from, Address, Docker, Program)
	}
	var reasons []string
	var failures []error
	for _, w := range ways {
		if from != "" && from != w.origin {
			continue
		}
		s, err := w.start(ctx)
		if err == nil {
			announce(kind, s)
			return s, nil
		}
		err = fmt.Errorf("%s: %s: %w", kind, w.origin, err)
		switch {
		case errors.Is(err, errAbsent):
			reasons = append(reasons, strings.Replace(err.Error(), errAbsent.Error()+": ", "", 1))
		case w.origin == Address || ctx.Err() != nil:
			return none, err
		default:
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 {
		return none, errors.Join(failures...)
	}
	return none, fmt.Errorf("%w: %s", ErrMissing, strings.Join(reasons, "; "))
}

var announced sync.Map // kind and origin

// announce prints once per kind and origin which server is used.
func announce(kind string, s server) {
	if _, again := announced.LoadOrStore(kind+" "+string(s.Origin()), true); !again {
		fmt.Fprintf(os.Stderr, "%s: %s, %s\n", kind, s.Origin(), s.where())
	}
}

// Command oncefence looks at keys, fences and dead letters from a terminal.
//
// Usage:
//
//	oncefence COMMAND [FLAGS] [ARGUMENTS]
//
// Flags may stand before or after the arguments; -- ends them. The exit status
// is 0 if the command did what it was asked, 1 if that failed, and 2 if it was
// asked in a way that it does not understand. Results go to standard output,
// everything else to standard error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

// command is one verb of the program. Each has a file of its own.
type command struct {
	name    string
	summary string // one line for the list of commands
	// run does the work. It returns a *usageError for a call that makes no
	// sense, any other error for a failure.
	run func(ctx context.Context, args []string, out streams) error
}

// streams is where a command writes.
type streams struct{ stdout, stderr io.Writer }

// print writes a result. That it could not be written is a failure.
func (s streams) print(text string) error {
	_, err := io.WriteString(s.stdout, text)
	return err
}

// complain writes to standard error, where nobody could be told of a failure.
func (s streams) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(s.stderr, format, args...)
}

// commands in the order of the help text.
func commands() []command {
	return []command{
		keyCommand,
		benchCommand,
	}
}

func main() {
	logging.Disable() // the Redis client's own; its errors are reported once
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := dispatch(ctx, os.Args[1:], streams{os.Stdout, os.Stderr})
	stop()
	os.Exit(status)
}

// dispatch runs the command that args name and returns the exit status.
func dispatch(ctx context.Context, args []string, out streams) int {
	if len(args) == 0 {
		out.complain("%s", help())
		return 2
	}
	run := func(context.Context, []string, streams) error {
		return usagef("there is no such command\n\n%s", strings.TrimSuffix(help(), "\n"))
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		run = func(context.Context, []string, streams) error { return out.print(help()) }
	}
	for _, c := range commands() {
		if c.name == args[0] {
			run = c.run
		}
	}
	err := run(ctx, args[1:], out)
	var usage *usageError
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		out.complain("oncefence %s: %v\n", args[0], err)
		return 2
	default:
		out.complain("oncefence %s: %v\n", args[0], err)
		return 1
	}
}

func help() string {
	var b strings.Builder
	b.WriteString("oncefence looks at keys, fences and dead letters.\n\nUsage: oncefence COMMAND [FLAGS] [ARGUMENTS]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-8s %s\n", c.name, c.summary)
	}
	b.WriteString("\noncefence COMMAND --help says what a command takes.\n")
	return b.String()
}

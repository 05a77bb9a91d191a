package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// usageError is a call that the command does not understand: exit status 2.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// newFlags makes a flag set for a command. usage is the whole help text before
// the list of flags.
func newFlags(name, usage string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "%s\n\nFlags:\n", strings.TrimSpace(usage))
		flags.VisitAll(func(f *flag.Flag) { describe(flags.Output(), f) })
	}
	return flags
}

// describe prints a flag as this program's help texts write it, with two
// dashes. A default that the type does not say is expected in the usage text.
func describe(w io.Writer, f *flag.Flag) {
	value, usage := flag.UnquoteUsage(f)
	if value != "" {
		value = " " + value
	}
	fmt.Fprintf(w, "  --%s%s\n        %s\n", f.Name, value, usage)
}

// parse reads flags wherever they stand and returns the arguments between
// them; all that follows -- is an argument. Asked for help, it prints it to
// standard output and returns flag.ErrHelp. Its other errors are usage errors.
func parse(flags *flag.FlagSet, args []string, out streams) ([]string, error) {
	var named, rest []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			rest = append(rest, arg)
			continue
		}
		named = append(named, arg)
		name, _, hasValue := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		if !hasValue && takesValue(flags.Lookup(name)) && i+1 < len(args) {
			i++
			named = append(named, args[i])
		}
	}
	// The package prints both the error and the whole help; one line is enough.
	usage := flags.Usage
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	err := flags.Parse(named)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(out.stdout)
		usage()
		return nil, err
	}
	if err != nil {
		return nil, &usageError{err.Error()}
	}
	return rest, nil
}

func takesValue(f *flag.Flag) bool {
	if f == nil {
		return false
	}
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return !ok || !b.IsBoolFlag()
}

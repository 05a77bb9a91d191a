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
func newFlags(name, usage string) *flagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // parse and dispatch do the talking
	flags.Usage = func() {}
	return &flagSet{flags, strings.TrimSpace(usage)}
}

// flagSet is the flags of one command with its help text.
type flagSet struct {
	*flag.FlagSet
	usage string
}

// help lists the flags as this program writes them, with two dashes. Defaults
// that do not go without saying are expected in the flags' own texts.
func (f *flagSet) help() string {
	var b strings.Builder
	b.WriteString(f.usage + "\n\nFlags:\n")
	f.VisitAll(func(one *flag.Flag) {
		value, usage := flag.UnquoteUsage(one)
		if value != "" {
			value = " " + value
		}
		fmt.Fprintf(&b, "  --%s%s\n        %s\n", one.Name, value, usage)
	})
	return b.String()
}

// parse reads flags wherever they stand and returns the arguments between
// them; all that follows -- is an argument. Asked for help, it prints it to
// standard output and returns flag.ErrHelp. Its other errors are usage errors.
func (f *flagSet) parse(args []string, out streams) ([]string, error) {
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
		if !hasValue && takesValue(f.Lookup(name)) && i+1 < len(args) {
			i++
			named = append(named, args[i])
		}
	}
	err := f.Parse(named)
	switch {
	case errors.Is(err, flag.ErrHelp):
		if failed := out.print(f.help()); failed != nil {
			return nil, failed
		}
		return nil, flag.ErrHelp
	case err != nil:
		return nil, f.usagef("%v", err)
	}
	return rest, nil
}

// usagef is a usageError that says where to read on.
func (f *flagSet) usagef(format string, args ...any) error {
	return usagef("%s\nSee: oncefence %s --help", fmt.Sprintf(format, args...), f.Name())
}

func takesValue(f *flag.Flag) bool {
	if f == nil {
		return false
	}
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return !ok || !b.IsBoolFlag()
}

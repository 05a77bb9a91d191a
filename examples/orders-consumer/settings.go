package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oncefence/oncefence/internal/fenceurl"
	"github.com/oncefence/oncefence/requeue"
)

// lease is short so that a killed consumer's claims are taken over soon.
const lease = 2 * time.Second

// exampleSchedule is short for the same reason.
var exampleSchedule = requeue.Schedule{Delays: []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}}

// settings is what a consumer process is told by its parent.
type settings struct {
	Brokers  []string
	Topic    string
	Group    string
	Instance string
	Members  int // in this process
	Fence    string
	Kind     string
	Provider string
	Lease    time.Duration
	Crashes  int
}

// flags is the command line.
type flags struct {
	brokers    []string
	fence      string
	input      string
	orders     int
	duplicates float64
	crashes    int
	faults     float64
	kind       string
	members    int
	keep       bool
	json       bool
}

// flagSet describes the command line. What it parses goes to f and brokers.
func flagSet(f *flags, brokers *string) *flag.FlagSet {
	set := flag.NewFlagSet("orders-consumer", flag.ContinueOnError)
	set.StringVar(brokers, "brokers", "", "Kafka brokers, `HOST:PORT,...`; default: an embedded broker")
	set.StringVar(&f.fence, "fence", "", "fence store `URL`: mem:, bolt:PATH, redis://HOST:PORT/DB; default: bolt in a temporary folder")
	set.StringVar(&f.input, "input", "", "orders to send, an NDJSON `FILE`; default: generated ones")
	set.IntVar(&f.orders, "orders", 10000, "number `N` of orders to generate, or of lines to take from --input (there by default all)")
	set.Float64Var(&f.duplicates, "duplicates", 20, "`PERCENT` of the generated orders that are sent twice (with --input 0)")
	set.IntVar(&f.crashes, "crashes", 3, "number `N` of times that a consumer is killed with SIGKILL (with mem: 0)")
	set.Float64Var(&f.faults, "faults", 5, "`PERCENT` of the payment requests that go wrong")
	set.StringVar(&f.kind, "kind", "idempotent", "`KIND` of effect: idempotent, probed or at-most-once")
	set.IntVar(&f.members, "members", 1, "number `N` of consumers in the group")
	set.BoolVar(&f.keep, "keep", false, "keep topics, group, namespace and fence file")
	set.BoolVar(&f.json, "json", false, "print one JSON object on standard output, everything else on standard error")
	set.SetOutput(io.Discard) // the caller prints the error
	return set
}

// parseFlags returns the command line with its defaults. For --help it prints
// the flags to out and returns flag.ErrHelp. Every other error is a sentence
// about the flag that is wrong.
func parseFlags(args []string, out io.Writer) (flags, error) {
	var f flags
	var brokers string
	set := flagSet(&f, &brokers)
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, "orders-consumer charges orders exactly once while its consumers are killed.\nWithout flags it needs no server. Flags:\n\n")
		set.SetOutput(out)
		set.PrintDefaults()
		return f, err
	case err != nil:
		return f, fmt.Errorf("%w; --help lists the flags", err)
	case set.NArg() > 0:
		return f, fmt.Errorf("unexpected argument %q; --help lists the flags", set.Arg(0))
	}
	given := make(map[string]bool)
	set.Visit(func(flag *flag.Flag) { given[flag.Name] = true })
	if given["brokers"] {
		f.brokers = strings.Split(brokers, ",")
	}
	if f.input != "" && !given["duplicates"] {
		f.duplicates = 0
	}
	if f.input != "" && !given["orders"] {
		f.orders = 0 // all
	} else if f.orders < 1 {
		return f, fmt.Errorf("--orders is %d: it must be positive", f.orders)
	}
	if f.fence == "mem:" && !given["crashes"] {
		f.crashes = 0
	}
	return f, f.check()
}

// check says what cannot be.
func (f *flags) check() error {
	scheme, _, isURL := strings.Cut(f.fence, ":")
	switch {
	case slices.Contains(f.brokers, ""):
		return fmt.Errorf("--brokers is %q: give HOST:PORT, several with commas and nothing else between them", strings.Join(f.brokers, ","))
	case f.fence != "" && (!isURL || !slices.Contains([]string{"mem", "bolt", "redis", "rediss"}, scheme)):
		return fmt.Errorf("--fence is %s: use mem:, bolt:PATH or redis://HOST:PORT/DB", fenceurl.Redact(f.fence))
	case f.duplicates < 0 || f.duplicates > 100:
		return fmt.Errorf("--duplicates is %v: it must be from 0 to 100", f.duplicates)
	case f.input != "" && f.duplicates != 0:
		return errors.New("--duplicates is for generated orders: with --input it must be 0")
	case f.faults < 0 || f.faults > 100:
		return fmt.Errorf("--faults is %v: it must be from 0 to 100", f.faults)
	case f.crashes < 0:
		return fmt.Errorf("--crashes is %d: it must not be negative", f.crashes)
	case f.fence == "mem:" && f.crashes > 0:
		return errors.New("--fence mem: forgets everything when its process is killed, so --crashes must be 0, or the fence bolt:PATH or redis://")
	case f.members < 1 || f.members > partitions:
		return fmt.Errorf("--members is %d: it must be from 1 to %d, the number of partitions", f.members, partitions)
	}
	if _, err := (&payments{}).effect(f.kind); err != nil {
		return fmt.Errorf("--kind: %w", err)
	}
	return nil
}

// embeddedFence returns the default fence in a new temporary folder.
func embeddedFence() (url, dir string, err error) {
	dir, err = os.MkdirTemp("", "orders-consumer-")
	return "bolt:" + filepath.Join(dir, "fence.db"), dir, err
}

// ownProcess reports whether each member gets a process of its own: a bolt file
// is for one process, and memory dies with it.
func ownProcess(fenceURL string) bool {
	return !strings.HasPrefix(fenceURL, "bolt:") && fenceURL != "mem:"
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

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

var errUsage = errors.New("usage")

func parseFlags(args []string, out io.Writer) (flags, error) {
	var f flags
	var brokers string
	set := flag.NewFlagSet("orders-consumer", flag.ContinueOnError)
	set.SetOutput(out)
	set.StringVar(&brokers, "brokers", "", "Kafka brokers, `HOST:PORT,...`; default: an embedded broker")
	set.StringVar(&f.fence, "fence", "", "fence store `URL`: mem:, bolt:PATH, redis://HOST:PORT/DB; default: bolt in a temporary folder")
	set.StringVar(&f.input, "input", "", "orders to send, an NDJSON `FILE`; default: generated ones")
	set.IntVar(&f.orders, "orders", 0, "`number` of orders to generate (default 10000), or of lines to take from --input (default all)")
	set.Float64Var(&f.duplicates, "duplicates", -1, "`percent` of the generated orders that are sent twice (default 20; 0 with --input)")
	set.IntVar(&f.crashes, "crashes", -1, "how `often` a consumer is killed with SIGKILL (default 3; 0 with mem:)")
	set.Float64Var(&f.faults, "faults", 5, "`percent` of the payment requests that go wrong")
	set.StringVar(&f.kind, "kind", "idempotent", "`kind` of effect: idempotent, probed or at-most-once")
	set.IntVar(&f.members, "members", 1, "`number` of consumers in the group")
	set.BoolVar(&f.keep, "keep", false, "keep topics, group, namespace and fence file")
	set.BoolVar(&f.json, "json", false, "print one JSON object on standard output, everything else on standard error")
	if err := set.Parse(args); err != nil {
		return f, fmt.Errorf("%w: %w", errUsage, err)
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("%w: unexpected argument %q", errUsage, set.Arg(0))
	}
	if brokers != "" {
		f.brokers = strings.Split(brokers, ",")
	}
	return f, f.check()
}

// check fills in the defaults and says what cannot be.
func (f *flags) check() error {
	if f.duplicates == -1 {
		f.duplicates = 20
		if f.input != "" {
			f.duplicates = 0
		}
	}
	if f.orders == 0 && f.input == "" {
		f.orders = 10000
	}
	mem := f.fence == "mem:"
	if f.crashes == -1 {
		f.crashes = 3
		if mem {
			f.crashes = 0
		}
	}
	switch {
	case f.orders < 0:
		return fmt.Errorf("%w: --orders is %d: it must be positive", errUsage, f.orders)
	case f.duplicates < 0 || f.duplicates > 100:
		return fmt.Errorf("%w: --duplicates is %v: it must be from 0 to 100", errUsage, f.duplicates)
	case f.input != "" && f.duplicates != 0:
		return fmt.Errorf("%w: --duplicates is for generated orders: with --input it must be 0", errUsage)
	case f.faults < 0 || f.faults > 100:
		return fmt.Errorf("%w: --faults is %v: it must be from 0 to 100", errUsage, f.faults)
	case f.crashes < 0:
		return fmt.Errorf("%w: --crashes is %d: it must not be negative", errUsage, f.crashes)
	case mem && f.crashes > 0:
		return fmt.Errorf("%w: --fence mem: forgets everything when its process is killed, so --crashes must be 0: use bolt: or redis:", errUsage)
	case f.members < 1 || f.members > partitions:
		return fmt.Errorf("%w: --members is %d: it must be from 1 to %d, the number of partitions", errUsage, f.members, partitions)
	}
	if _, err := (&payments{}).effect(f.kind); err != nil {
		return fmt.Errorf("%w: --kind: %w", errUsage, err)
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

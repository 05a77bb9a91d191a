package model

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

var long = flag.Bool("long", false, "also walk the large bounds: minutes, and up to 8 GB of memory")

// bounds are walked for each of these kinds. What is not named keeps the default
// of claim.pml: two crashes, two ended leases, two attempts, four carriers.
const (
	probed = 1 << iota
	amo
	idem
	all = probed | amo | idem
)

type setting struct {
	name, defines string
	kinds         int
	long          bool
}

const once = "-DCRASHES=1 -DLEASES=1 "

var settings = []setting{
	{name: "crashes", kinds: all},
	{name: "late effects", defines: "-DLATE=1", kinds: all},
	{name: "releases", defines: "-DRELEASES=1", kinds: all},
	{name: "failover", defines: "-DFAILOVERS=1 -DCRASHES=1", kinds: all},
	{name: "moves", defines: once + "-DMOVE=1 -DLATE=1 -DRELEASES=1 -DCARRIERS=5", kinds: all},
	{name: "in place", defines: "-DIN_PLACE=1 -DRELEASES=1 -DLATE=1", kinds: all},
	{name: "in place, failover", defines: once + "-DIN_PLACE=1 -DFAILOVERS=1", kinds: all},
	{name: "purge and replay", defines: once + "-DPURGES=1 -DREPLAYS=1", kinds: all},
	{name: "failover and replay", defines: once + "-DFAILOVERS=1 -DREPLAYS=1", kinds: all},
	{name: "forgetful sink", defines: "-DFORGET=1", kinds: idem},
	{name: "much at once", defines: once + "-DLATE=1 -DRELEASES=1 -DFAILOVERS=1 -DPURGES=1", kinds: amo},

	{name: "three attempts", defines: "-DATT=3 -DCARRIERS=5 -DLATE=1", kinds: all, long: true},
	{name: "three crashes", defines: "-DCRASHES=3 -DLEASES=3 -DRELEASES=1", kinds: all, long: true},
	{name: "two failovers", defines: "-DFAILOVERS=2", kinds: all, long: true},
	{name: "purge and replay", defines: "-DPURGES=1 -DREPLAYS=1", kinds: all, long: true},
	{name: "failover and replay", defines: "-DFAILOVERS=1 -DREPLAYS=1", kinds: all, long: true},
	{name: "two replays", defines: once + "-DREPLAYS=2 -DLATE=1 -DCARRIERS=5", kinds: all, long: true},
	{name: "forgetful sink, replay", defines: once + "-DFORGET=1 -DREPLAYS=1 -DLATE=1", kinds: idem, long: true},
	{name: "all at once", defines: once + "-DLATE=1 -DRELEASES=1 -DFAILOVERS=1 -DPURGES=1", kinds: all, long: true},
}

// A mutation takes one rule away, with bounds that bring it out.
type mutation struct{ rule, without, defines, why string }

var mutations = []mutation{
	{"quiet", "QUIET", "-DKIND=0 -DLATE=1", "an effect lands after its probe said not applied"},
	{"prior", "PRIOR", "-DKIND=0 -DRELEASES=1", "a release forgets a doubt"},
	{"doubt", "DOUBT", "-DKIND=0 -DPURGES=1", "retention forgets a doubt"},
	{"reopen", "REOPEN", "-DKIND=0 -DREPLAYS=1", "a replay opens the key to every old copy"},
	{"confirm", "CONFIRM", "-DKIND=0 -DFAILOVERS=1", "a failover forgets a claim whose effect ran"},
	{"carry", "CARRY", "-DKIND=1 -DFAILOVERS=1 -DREPLAYS=1", "a failover forgets the verdict, and the bury does not say it died in doubt"},
	{"sticky", "STICKY", "-DKIND=2 -DFORGET=1", "a sink that has forgotten is asked again, because the doubt is gone"},
	{"token", "TOKEN", "-DKIND=0", "an old holder has the token of a new one"},
	{"copy", "COPY", "-DKIND=0", "requeuing hands over a copy that nobody produced"},
	{"resolved", "RESOLVED", "-DKIND=1 -DPURGES=1 -DREPLAYS=1", "a late bury closes a key that was resolved and replayed"},
	{"compare", "COMPARE", "-DKIND=0", "an old holder writes over a new one"},
}

var (
	// Room for the deepest path of the largest bounds, several times over, and
	// for the memory of a small machine.
	deep   = []string{"-m100000", "-w22"}
	fast   = []string{"-O0", "-DMEMLIM=3000"}
	deeper = []string{"-m100000", "-w26"}
	faster = []string{"-O2", "-DMEMLIM=9000"}
)

// options collects which options of the model were ever taken.
type options struct {
	mu    sync.Mutex
	taken map[string]bool
}

func (o *options) add(v verdict) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(o.taken, v.taken)
}

// Within each bound: no error, and nothing of the state space left out.
func TestProtocol(t *testing.T) {
	tools(t)
	seen := options{taken: make(map[string]bool)}
	t.Run("bounds", func(t *testing.T) {
		for _, s := range settings {
			if s.long && !*long {
				continue
			}
			for kind, name := range []string{"probed", "amo", "idem"} {
				if s.kinds&(1<<kind) == 0 {
					continue
				}
				t.Run(s.name+"/"+name, func(t *testing.T) {
					if !s.long {
						t.Parallel() // the long ones need the memory
					}
					compile, walk := fast, deep
					if s.long {
						compile, walk = faster, deeper
					}
					v, err := search(t, fmt.Sprintf("-DKIND=%d %s", kind, s.defines), compile, walk)
					if err != nil {
						t.Fatal(err)
					}
					if v.errors != 0 {
						t.Fatalf("%d errors:\n%s", v.errors, v.output)
					}
					t.Logf("%d states, depth %d", v.states, v.depth)
					seen.add(v)
				})
			}
		}
	})
	if t.Failed() {
		return
	}
	// An option that is never taken proves nothing.
	for _, o := range listOptions(t) {
		if !seen.taken[o.place] && !strings.Contains(o.text, "without") {
			t.Errorf("%s: this option was taken in no search: %s", o.place, o.text)
		}
	}
}

// Without any one of its rules the protocol breaks.
func TestMutations(t *testing.T) {
	tools(t)
	for _, m := range mutations {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			v, err := search(t, "-DWITHOUT_"+m.without+" "+m.defines, fast, deep)
			if err != nil {
				t.Fatal(err)
			}
			if v.errors == 0 || !strings.Contains(v.output, "assertion violated") {
				t.Errorf("nothing was found; expected: %s\n%s", m.why, v.output)
			}
			t.Logf("found after %d states", v.states)
		})
	}
}

// Every rule of the model has its mutation.
func TestEveryRuleIsTakenAway(t *testing.T) {
	text, err := sources.ReadFile("claim.pml")
	if err != nil {
		t.Fatal(err)
	}
	var rules, tried []string
	for line := range strings.Lines(string(text)) {
		if rule, ok := strings.CutPrefix(line, "#ifdef WITHOUT_"); ok {
			rules = append(rules, strings.TrimSpace(rule))
		}
	}
	for _, m := range mutations {
		tried = append(tried, m.without)
	}
	slices.Sort(rules)
	slices.Sort(tried)
	if len(rules) == 0 || !slices.Equal(rules, tried) {
		t.Errorf("rules of the model %v, rules taken away %v", rules, tried)
	}
}

type option struct{ place, text string }

// listOptions returns all options of the model's loops but the Monitor's, which
// are the errors.
func listOptions(t *testing.T) (all []option) {
	t.Helper()
	for _, file := range []string{"worker.pml", "world.pml"} {
		text, err := sources.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			if strings.Contains(line, "proctype Monitor") {
				break
			}
			if strings.HasPrefix(strings.TrimSpace(line), ":: d_step {") {
				all = append(all, option{fmt.Sprintf("%s:%d", file, n), strings.TrimSpace(line)})
			}
		}
	}
	if len(all) < 40 {
		t.Fatalf("only %d options found: has the model another shape?", len(all))
	}
	return all
}

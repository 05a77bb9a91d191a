package deps

// rule says what the packages of one folder may import. Folders are relative to
// the module; a folder that ends in /... stands for itself and all below, and
// the longest match decides. What is not listed is refused, the standard
// library is always allowed.
type rule struct {
	own    []string // folders of this module
	others []string // import paths, with all below them
	why    string   // ends the failure's sentence
}

// anything in own or others lifts the restriction.
const anything = "*"

const (
	whyDriver  = "a driver package is what others implement: it asks for nothing but the standard library"
	whyChain   = "the arrows go consumer, effect, fence, fence/driver, so that each can be used and tested without what lies above it"
	whyAdapter = "an adapter brings one third-party system to those who import it, and no other"
	whySuite   = "a conformance suite lands in the tests of those who implement a store, a source or an effect: it brings no system along"
	whyMetrics = "the loop and the fence report to small observer interfaces, so that only those who want Prometheus pay for it"
)

// The loop's own imports, and what it is made of.
var (
	belowEffect   = []string{"fence", "fence/driver"}
	belowConsumer = []string{"effect", "fence", "fence/driver", "requeue", "consumer/driver", "internal/fault"}
)

// rules are section by section what may import whom. A new package needs a line
// here: decide whose user pays for what it imports.
var rules = map[string]rule{
	"": {why: "the root package only documents"},

	"fence/driver":      {why: whyDriver},
	"fence":             {own: []string{"fence/driver"}, why: whyChain},
	"fence/memfence":    {own: belowEffect, why: "the reference store runs everywhere"},
	"fence/boltfence":   {own: belowEffect, others: []string{"go.etcd.io/bbolt"}, why: whyAdapter},
	"fence/redisfence":  {own: belowEffect, others: []string{"github.com/redis/go-redis/v9"}, why: whyAdapter},
	"fence/pgfence":     {own: append([]string{"internal/fault"}, belowEffect...), others: []string{"github.com/jackc/pgx/v5"}, why: whyAdapter},
	"fence/fencetest":   {own: append([]string{"fence/memfence"}, belowEffect...), why: whySuite},
	"effect":            {own: belowEffect, why: whyChain},
	"effect/httpeffect": {own: []string{"effect"}, why: "an HTTP client is in the standard library"},
	"effect/effecttest": {own: append([]string{"effect", "fence/memfence"}, belowEffect...), why: whySuite},

	"consumer/driver":       {why: whyDriver},
	"requeue":               {own: []string{"consumer/driver"}, why: "the schedule knows records, not brokers"},
	"requeue/kafkarequeue":  {own: []string{"requeue", "consumer/driver"}, others: []string{"github.com/twmb/franz-go"}, why: whyAdapter},
	"consumer":              {own: belowConsumer, others: []string{"github.com/hashicorp/go-multierror"}, why: whyChain},
	"consumer/memsource":    {own: []string{"consumer/driver"}, why: "the source in memory runs everywhere"},
	"consumer/kafkasource":  {own: []string{"consumer/driver"}, others: []string{"github.com/twmb/franz-go"}, why: whyAdapter},
	"consumer/redisstream":  {own: []string{"consumer/driver"}, others: []string{"github.com/redis/go-redis/v9"}, why: whyAdapter},
	"consumer/consumertest": {own: append([]string{"consumer", "consumer/memsource", "fence/memfence"}, belowConsumer...), why: whySuite},

	"metrics": {own: append([]string{"consumer"}, belowConsumer...), others: []string{"github.com/prometheus"}, why: whyMetrics},

	"internal/bench": {
		own:    []string{anything},
		others: []string{"github.com/redis/go-redis/v9", "go.etcd.io/bbolt"},
		why:    "it measures stores against themselves; no library package may import it",
	},
	"internal/fault": {why: "a fault point costs a user nothing"},
	"internal/fenceurl": {
		own:    []string{"fence", "fence/driver", "fence/memfence", "fence/boltfence", "fence/redisfence", "fence/pgfence"},
		others: []string{"github.com/redis/go-redis/v9", "github.com/jackc/pgx/v5", "go.etcd.io/bbolt"},
		why:    "it opens every store and nothing else; no library package may import it",
	},
	"cmd/...":      {own: []string{anything}, others: []string{anything}},
	"examples/...": {own: []string{anything}, others: []string{anything}},
	"test/...":     {own: []string{anything}, others: []string{anything}},
}

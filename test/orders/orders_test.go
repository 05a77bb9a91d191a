// Package orders holds the tests of examples/orders-consumer on real servers:
// what a run leaves there.
package orders

import (
	"bytes"
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/test/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// place is what runs may leave something in.
type place struct {
	program string
	brokers []string
	admin   *kadm.Client
	url     string
	redis   *redis.Client
}

func open(t *testing.T) place {
	t.Helper()
	p := place{program: build(t), brokers: servers.Kafka(t).Brokers(), url: servers.Redis(t).URL()}
	client, err := kgo.NewClient(kgo.SeedBrokers(p.brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	opts, err := redis.ParseURL(p.url)
	if err != nil {
		t.Fatal(err)
	}
	p.admin, p.redis = kadm.NewClient(client), redis.NewClient(opts)
	t.Cleanup(func() { _ = p.redis.Close() })
	return p
}

// found is what lies in a place, by name.
type found struct{ topics, groups, keys []string }

func (p place) look(t *testing.T) (f found) {
	t.Helper()
	topics, err := p.admin.ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	groups, err := p.admin.ListGroups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.topics, f.groups = topics.Names(), groups.Groups()
	keys := p.redis.Scan(t.Context(), 0, "idemp:*", 1000).Iterator()
	for keys.Next(t.Context()) {
		f.keys = append(f.keys, keys.Val())
	}
	if err := keys.Err(); err != nil {
		t.Fatal(err)
	}
	return f
}

// since returns what is in f and was not before.
func (f found) since(before found) found {
	added := func(now, before []string) (names []string) {
		was := make(map[string]bool, len(before))
		for _, n := range before {
			was[n] = true
		}
		for _, n := range now {
			if !was[n] {
				names = append(names, n)
			}
		}
		return names
	}
	return found{added(f.topics, before.topics), added(f.groups, before.groups), added(f.keys, before.keys)}
}

// build builds the example for the test.
func build(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "orders-consumer")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/oncefence/oncefence/examples/orders-consumer")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	return program
}

// run runs the example on the place's servers and checks its account.
func (p place) run(t *testing.T, args ...string) {
	t.Helper()
	args = append([]string{"--json", "--brokers", strings.Join(p.brokers, ","), "--fence", p.url, "--orders", "300", "--crashes", "1"}, args...)
	cmd := exec.CommandContext(t.Context(), p.program, args...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("orders-consumer %v: %v\n%s\n%s", args, err, &out, &log)
	}
	var r struct {
		Orders, Applied, Duplicates, Lost int
		Broker, Fence                     string
		DeadLetters                       int `json:"dead_letters"`
		DoubleCharges                     int `json:"double_charges"`
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	if r.Orders != 360 || r.Applied+r.DeadLetters != 300 || r.Duplicates != 60 || r.Lost != 0 || r.DoubleCharges != 0 {
		t.Errorf("the run ends as %s", &out)
	}
	if r.Broker != strings.Join(p.brokers, ",") || !strings.HasPrefix(r.Fence, "redis") {
		t.Errorf("the run was on broker %s and fence %s", r.Broker, r.Fence)
	}
}

func TestLeft(t *testing.T) {
	p := open(t)
	t.Run("nothing", p.testNothingRemains)
	t.Run("keep", p.testKeep)
}

// Without --keep nothing is left of a run: no topic, no group, no key. Two
// members have a process each, and one of them is killed.
func (p place) testNothingRemains(t *testing.T) {
	before := p.look(t)
	p.run(t, "--members", "2")
	if left := p.look(t).since(before); len(left.topics)+len(left.groups)+len(left.keys) > 0 {
		t.Errorf("left behind: topics %v, groups %v, keys %v", left.topics, left.groups, left.keys)
	}
}

// With --keep all of it stays, under names that no other run has.
func (p place) testKeep(t *testing.T) {
	before := p.look(t)
	p.run(t, "--keep", "--faults", "20")
	p.run(t, "--keep", "--faults", "20")
	left := p.look(t).since(before)
	slices.Sort(left.topics)
	if len(left.topics) != 10 || len(left.groups) != 2 { // a source, three delays and a dead-letter topic each
		t.Errorf("kept: topics %v, groups %v", left.topics, left.groups)
	}
	namespaces := map[string]int{}
	for _, key := range left.keys {
		name, _, _ := strings.Cut(strings.TrimPrefix(key, "idemp:{%-:"), ":")
		namespaces[name]++
	}
	if got := slices.Sorted(maps.Keys(namespaces)); !slices.Equal(got, slices.Sorted(slices.Values(left.groups))) {
		t.Errorf("kept: keys of %v, groups %v", got, left.groups)
	}
	for name, n := range namespaces {
		if n < 300 {
			t.Errorf("%d keys of %s are kept, want one for each order", n, name)
		}
	}
	p.remove(t, left)
}

func (p place) remove(t *testing.T, f found) {
	t.Helper()
	if _, err := p.admin.DeleteTopics(t.Context(), f.topics...); err != nil {
		t.Error(err)
	}
	if err := p.redis.Del(t.Context(), f.keys...).Err(); err != nil {
		t.Error(err)
	}
}

package metrics_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/metrics"
)

func newMetrics(tb testing.TB, opts *metrics.Options) (*metrics.Metrics, *prometheus.Registry) {
	tb.Helper()
	reg := prometheus.NewPedanticRegistry()
	m, err := metrics.New(reg, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return m, reg
}

func TestDecisions(t *testing.T) {
	m, reg := newMetrics(t, nil)
	m.Delivered(3)
	m.Delivered(2)
	for range 3 {
		m.Decided(consumer.Decision{Decision: consumer.DecisionNew, Topic: "orders"})
	}
	m.Decided(consumer.Decision{Decision: consumer.DecisionDone, Topic: "orders", SinceFirstSeen: 2 * time.Second})
	m.Decided(consumer.Decision{Decision: consumer.DecisionDone, Topic: "refunds", SinceFirstSeen: 50 * time.Hour})
	m.Decided(consumer.Decision{Decision: consumer.DecisionLateSeal, Topic: "orders"})
	m.Decided(consumer.Decision{Decision: consumer.DecisionVanished, Topic: "orders"})
	m.Ran("idempotent", "applied", 20*time.Millisecond)
	m.Committed(6, 2)

	all := gather(t, reg)
	expect(t, all, "oncefence_deliveries_total", map[string]float64{"": 5})
	expect(t, all, "oncefence_decisions_total", map[string]float64{
		"new,orders": 3, "done,orders": 1, "done,refunds": 1, "late_seal,orders": 1, "vanished,orders": 1,
	})
	expect(t, all, "oncefence_late_seals_total", map[string]float64{"": 1})
	expect(t, all, "oncefence_vanished_claims_total", map[string]float64{"": 1})
	expect(t, all, "oncefence_first_seen_to_seal_seconds", map[string]float64{"orders": 1, "refunds": 1})
	if sums := all["oncefence_first_seen_to_seal_seconds"].sums; sums["orders"] != 2 || sums["refunds"] != 180000 {
		t.Errorf("times to seal add up to %v, want 2 s and 50 h", sums)
	}
	expect(t, all, "oncefence_effect_seconds", map[string]float64{"applied,idempotent": 1})
	expect(t, all, "oncefence_commits_total", map[string]float64{"": 6})
	expect(t, all, "oncefence_commit_failures_total", map[string]float64{"": 2})
}

func TestStoreCalls(t *testing.T) {
	m, reg := newMetrics(t, nil)
	m.StoreCall("claim", 512, 0, time.Millisecond)
	m.StoreCall("claim", 88, 5, 3*time.Millisecond)
	m.StoreCall("renew", 40, 0, time.Millisecond)
	m.Renewed(39, 1)

	all := gather(t, reg)
	expect(t, all, "oncefence_store_call_seconds", map[string]float64{"claim": 2, "renew": 1})
	expect(t, all, "oncefence_store_batch_items", map[string]float64{"claim": 2, "renew": 1})
	if sum := all["oncefence_store_batch_items"].sums["claim"]; sum != 600 {
		t.Errorf("%v items claimed, want 600", sum)
	}
	expect(t, all, "oncefence_store_item_failures_total", map[string]float64{"claim": 5, "renew": 0})
	expect(t, all, "oncefence_lease_renewals_total", map[string]float64{"": 39})
	expect(t, all, "oncefence_leases_lost_total", map[string]float64{"": 1})
}

// What alerts are made of is there before it happens: a rate over a series that
// appears with its first count does not see that count.
func TestZeroes(t *testing.T) {
	_, reg := newMetrics(t, nil)
	all := gather(t, reg)
	for _, name := range []string{
		"oncefence_deliveries_total", "oncefence_late_seals_total", "oncefence_vanished_claims_total", "oncefence_commits_total",
		"oncefence_commit_failures_total", "oncefence_lease_renewals_total", "oncefence_leases_lost_total",
	} {
		expect(t, all, name, map[string]float64{"": 0})
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		reg  func() prometheus.Registerer
		opts *metrics.Options
		says string
	}{
		"no registerer": {func() prometheus.Registerer { return nil }, nil, "the registerer is nil"},
		"twice": {func() prometheus.Registerer {
			_, reg := newMetrics(t, nil)
			return reg
		}, nil, "registered here already: for a second consumer use Metrics.Consumer"},
		"other label names": {func() prometheus.Registerer {
			_, reg := newMetrics(t, nil)
			return reg
		}, &metrics.Options{ConstLabels: prometheus.Labels{"consumer": "b"}}, "different label names"},
		"a label of ours":  {func() prometheus.Registerer { return prometheus.NewRegistry() }, &metrics.Options{ConstLabels: prometheus.Labels{"topic": "x"}}, "topic"},
		"the empty tenant": {func() prometheus.Registerer { return prometheus.NewRegistry() }, &metrics.Options{Tenants: []string{"a", ""}}, "names the empty tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := metrics.New(c.reg(), c.opts)
			if err == nil || m != nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("New answers %v, %v, want an error that says %q", m, err, c.says)
			}
		})
	}
}

func TestConstLabels(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	for i, name := range []string{"a", "b"} {
		m, err := metrics.New(reg, &metrics.Options{ConstLabels: prometheus.Labels{"consumer": name}})
		if err != nil {
			t.Fatal(err)
		}
		m.Delivered(i + 1)
	}
	expect(t, gather(t, reg), "oncefence_deliveries_total", map[string]float64{"a": 1, "b": 2})
}

// Many goroutines count; nothing is lost. Under the race detector this also
// shows that no state is shared without care.
func TestConcurrent(t *testing.T) {
	m, reg := newMetrics(t, nil)
	other := m.Consumer("")
	var wait sync.WaitGroup
	for _, topic := range []string{"a", "b", "c", "d"} {
		wait.Go(func() {
			for range 500 {
				m.Decided(consumer.Decision{Decision: consumer.DecisionNew, Topic: topic})
				other.Decided(consumer.Decision{Decision: consumer.DecisionNew, Topic: topic})
				other.Gauges(consumer.Gauges{Running: 1})
				m.StoreCall("op-"+topic, 1, 0, 0)
			}
		})
	}
	for range 20 {
		gather(t, reg)
	}
	wait.Wait()
	all := gather(t, reg)
	expect(t, all, "oncefence_decisions_total", map[string]float64{"new,a": 1000, "new,b": 1000, "new,c": 1000, "new,d": 1000})
	expect(t, all, "oncefence_store_batch_items", map[string]float64{"op-a": 500, "op-b": 500, "op-c": 500, "op-d": 500})
}

package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/metrics"
)

func count(all map[string]family) (series int) {
	for _, f := range all {
		series += len(f.series)
	}
	return series
}

// decide reports what one record's way through the loop reports, with a key,
// ids and texts that no other record has.
func decide(m *metrics.Metrics, i int) {
	unique := fmt.Sprint("unique-", i)
	d := consumer.Decision{
		Topic: "orders", Record: &driver.Record{Topic: "orders", Offset: int64(i), Key: []byte(unique), Value: []byte(unique)},
		Key: "orders:0:" + unique, EffectID: unique, Attempt: uint32(i), OriginOffset: int64(i), Reason: "the sink said " + unique,
	}
	for _, d.Decision = range decisions {
		d.SinceFirstSeen = time.Duration(i) * time.Millisecond
		m.Decided(d)
	}
	m.Ran("probed", "unknown", time.Duration(i))
	m.StoreCall("claim", i%512, i%3, time.Duration(i))
	m.Renewed(1, 0)
	m.Delivered(1)
	m.Committed(1, 0)
	m.Gauges(consumer.Gauges{InFlight: i, Partitions: []consumer.PartitionGauges{part("orders", 0, int64(i), int64(i))}})
}

// decisions are all that there are.
var decisions = []string{
	consumer.DecisionNew, consumer.DecisionDone, consumer.DecisionDuplicate, consumer.DecisionHeld, consumer.DecisionInDoubt, consumer.DecisionConflict,
	consumer.DecisionSuperseded, consumer.DecisionDead, consumer.DecisionRequeued, consumer.DecisionDeadLetter, consumer.DecisionParked,
	consumer.DecisionPoison, consumer.DecisionMoved, consumer.DecisionReleased, consumer.DecisionLateSeal, consumer.DecisionVanished,
	consumer.DecisionMissingID, consumer.DecisionLostClaim, consumer.DecisionUnknown, consumer.DecisionForeignCopy, consumer.DecisionAbandoned,
}

// The number of series does not depend on what the records are.
func TestCardinality(t *testing.T) {
	m, reg := newMetrics(t, nil)
	decide(m, 1)
	first := count(gather(t, reg))
	for i := 2; i <= 10000; i++ {
		decide(m, i)
	}
	all := gather(t, reg)
	if n := count(all); n != first {
		t.Errorf("10,000 records make %d series, one makes %d", n, first)
	}
	if got := all["oncefence_decisions_total"].series["done,orders"]; got != 10000 {
		t.Errorf("%v records counted as done, want 10000", got)
	}
	for name, f := range all {
		for at := range f.series {
			if len(at) > 40 {
				t.Errorf("%s has the label values %q", name, at)
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	m, _ := newMetrics(t, nil)
	d := consumer.Decision{Decision: consumer.DecisionDone, Topic: "orders", SinceFirstSeen: time.Second}
	for name, f := range map[string]func(){
		"Decided":   func() { m.Decided(d) },
		"Ran":       func() { m.Ran("idempotent", "applied", time.Millisecond) },
		"Delivered": func() { m.Delivered(1) },
		"Committed": func() { m.Committed(1, 0) },
		"StoreCall": func() { m.StoreCall("claim", 512, 0, time.Millisecond) },
		"Renewed":   func() { m.Renewed(1, 0) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s makes %v allocations, want none", name, n)
		}
	}
}

// BenchmarkDecided is the cost of the decision that costs most.
func BenchmarkDecided(b *testing.B) {
	m, err := metrics.New(prometheus.NewRegistry(), nil)
	if err != nil {
		b.Fatal(err)
	}
	d := consumer.Decision{Decision: consumer.DecisionDone, Topic: "orders", SinceFirstSeen: time.Second}
	b.ReportAllocs()
	for b.Loop() {
		m.Decided(d)
	}
}

package metrics_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/metrics"
)

func part(topic string, partition int32, committed, lag int64) consumer.PartitionGauges {
	return consumer.PartitionGauges{
		TopicPartition: driver.TopicPartition{Topic: topic, Partition: partition}, Committed: committed, Mark: committed + 1, Lag: lag, InFlight: 2,
	}
}

func TestGauges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, reg := newMetrics(t, nil)
		paused := part("orders", 1, 7, 3)
		paused.Paused = true
		down := time.Now()
		time.Sleep(4 * time.Second)
		m.Gauges(consumer.Gauges{
			Running: 3, InFlight: 9, Held: 2, InDoubt: 1, OldestInDoubt: time.Minute, StoreDownSince: down,
			Partitions: []consumer.PartitionGauges{part("orders", 0, -1, -1), paused},
		})
		time.Sleep(2 * time.Second)
		all := gather(t, reg)
		for name, want := range map[string]map[string]float64{
			"oncefence_effects_running":             {"": 3},
			"oncefence_records_in_flight":           {"": 9},
			"oncefence_records_held":                {"": 2},
			"oncefence_records_in_doubt":            {"": 1},
			"oncefence_in_doubt_oldest_seconds":     {"": 62}, // as of now, not of the report
			"oncefence_store_down_seconds":          {"": 6},
			"oncefence_partition_committed_offset":  {"1,orders": 7},
			"oncefence_partition_mark_offset":       {"0,orders": 0, "1,orders": 8},
			"oncefence_partition_lag_records":       {"1,orders": 3},
			"oncefence_partition_in_flight_records": {"0,orders": 2, "1,orders": 2},
			"oncefence_partition_paused":            {"0,orders": 0, "1,orders": 1},
		} {
			expect(t, all, name, want)
		}
	})
}

// A partition that is not assigned any more has no series.
func TestPartitionGone(t *testing.T) {
	m, reg := newMetrics(t, nil)
	m.Gauges(consumer.Gauges{Partitions: []consumer.PartitionGauges{part("orders", 0, 5, 0), part("orders", 1, 7, 3)}})
	expect(t, gather(t, reg), "oncefence_partition_lag_records", map[string]float64{"0,orders": 0, "1,orders": 3})
	m.Gauges(consumer.Gauges{Partitions: []consumer.PartitionGauges{part("orders", 1, 8, 2)}})
	all := gather(t, reg)
	expect(t, all, "oncefence_partition_lag_records", map[string]float64{"1,orders": 2})
	expect(t, all, "oncefence_partition_committed_offset", map[string]float64{"1,orders": 8})
}

// A consumer that has stopped leaves no gauges behind, and is back with its
// next report.
func TestSilentConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, reg := newMetrics(t, nil)
		if f, there := gather(t, reg)["oncefence_effects_running"]; there {
			t.Errorf("before the first report there is %v", f.series)
		}
		for range 2 {
			m.Gauges(consumer.Gauges{Running: 3, Partitions: []consumer.PartitionGauges{part("orders", 1, 7, 3)}})
			time.Sleep(metrics.StaleAfter)
			expect(t, gather(t, reg), "oncefence_effects_running", map[string]float64{"": 3})
			time.Sleep(time.Millisecond)
			all := gather(t, reg)
			for _, name := range []string{"oncefence_effects_running", "oncefence_partition_lag_records", "oncefence_store_down_seconds"} {
				expect(t, all, name, nil)
			}
		}
	})
}

func TestSeveralConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, reg := newMetrics(t, nil)
		second := m.Consumer("acme") // the tenant is not looked at
		m.Delivered(1)
		second.Delivered(2)
		m.Gauges(consumer.Gauges{Running: 1, InFlight: 2, InDoubt: 1, OldestInDoubt: time.Minute, Partitions: []consumer.PartitionGauges{
			part("orders", 0, 100, 5), part("refunds", 0, 1, 1), part("bills", 0, 9, 1),
		}})
		second.Gauges(consumer.Gauges{Running: 4, InFlight: 3, InDoubt: 1, OldestInDoubt: time.Hour, Partitions: []consumer.PartitionGauges{
			part("orders", 0, 90, 15), part("orders", 1, 1, 0), part("bills", 0, 8, -1),
		}})
		all := gather(t, reg)
		for name, want := range map[string]map[string]float64{
			"oncefence_deliveries_total":            {"": 3},
			"oncefence_effects_running":             {"": 5},
			"oncefence_records_in_flight":           {"": 5},
			"oncefence_records_in_doubt":            {"": 2},
			"oncefence_in_doubt_oldest_seconds":     {"": 3600},
			"oncefence_partition_committed_offset":  {"0,orders": 90, "1,orders": 1, "0,refunds": 1, "0,bills": 8},
			"oncefence_partition_lag_records":       {"0,orders": 20, "1,orders": 0, "0,refunds": 1}, // of bills one is not known
			"oncefence_partition_in_flight_records": {"0,orders": 4, "1,orders": 2, "0,refunds": 2, "0,bills": 4},
		} {
			expect(t, all, name, want)
		}
	})
}

func TestTenants(t *testing.T) {
	m, reg := newMetrics(t, &metrics.Options{Tenants: []string{"acme", "globex"}})
	for i, tenant := range []string{"acme", "globex", "initech", "hooli", ""} {
		o := m.Consumer(tenant)
		o.Delivered(1 << i)
		o.Gauges(consumer.Gauges{Running: 1 << i})
		o.Decided(consumer.Decision{Decision: consumer.DecisionDone, Topic: "orders"})
	}
	all := gather(t, reg)
	want := map[string]float64{"acme": 1, "globex": 2, metrics.OtherTenant: 4 + 8, "": 16}
	expect(t, all, "oncefence_deliveries_total", want)
	expect(t, all, "oncefence_effects_running", want)
	expect(t, all, "oncefence_decisions_total", map[string]float64{"done,acme,orders": 1, "done,globex,orders": 1, "done,other,orders": 2, "done,,orders": 1})
}

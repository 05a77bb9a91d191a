package metrics

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
)

// StaleAfter is the time after which a consumer that has not reported its
// gauges is left out: it has stopped, or its loop stands. Consumers report about
// once a second.
const StaleAfter = 10 * time.Second

// snapshot is a consumer's last report.
type snapshot struct {
	consumer.Gauges
	at time.Time
}

// gaugeDescs are the metrics that are worked out from the snapshots when they
// are asked for, so that a partition is gone as soon as it is not assigned.
type gaugeDescs struct {
	running, inFlight, held, inDoubt, oldestInDoubt, storeDown, skipped *prometheus.Desc
	committed, mark, lag, partInFlight, paused                          *prometheus.Desc
}

func newGaugeDescs(constant prometheus.Labels, tenant []string) *gaugeDescs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, slices.Concat(tenant, labels), constant)
	}
	return &gaugeDescs{
		running:       desc("oncefence_effects_running", "Effects that run now."),
		inFlight:      desc("oncefence_records_in_flight", "Records handed to the loop and not settled, those that wait for their due time included."),
		held:          desc("oncefence_records_held", "Records that wait because another holder has their key."),
		inDoubt:       desc("oncefence_records_in_doubt", "Records of which nobody knows yet whether their effect was applied, and which are being resolved. Parked ones are dead letters and not counted."),
		oldestInDoubt: desc("oncefence_in_doubt_oldest_seconds", "Time since the oldest of these was first seen; 0 when there is none."),
		storeDown:     desc("oncefence_store_down_seconds", "How long the fence store has not answered, so that no effect starts; 0 while it answers."),
		skipped:       desc("oncefence_offsets_skipped", "Offsets that configured resets have jumped over since the consumer started. Anything above 0: records were lost to retention or truncation before they were read."),
		committed:     desc("oncefence_partition_committed_offset", "Committed position of an assigned partition; missing before the first commit.", "topic", "partition"),
		mark:          desc("oncefence_partition_mark_offset", "Low-water mark: the position that could be committed; missing before anything is settled.", "topic", "partition"),
		lag:           desc("oncefence_partition_lag_records", "Offsets between the commit and the last stable offset; missing while not known.", "topic", "partition"),
		partInFlight:  desc("oncefence_partition_in_flight_records", "Records of the partition that are not settled.", "topic", "partition"),
		paused:        desc("oncefence_partition_paused", "1 while fetching is paused because the partition is full, else 0.", "topic", "partition"),
	}
}

func (d *gaugeDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{d.running, d.inFlight, d.held, d.inDoubt, d.oldestInDoubt, d.storeDown, d.skipped, d.committed, d.mark, d.lag, d.partInFlight, d.paused}
}

// list makes an observer known whose gauges are to be collected.
func (m *Metrics) list(o *observer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !o.listed.Swap(true) {
		m.observers = append(m.observers, o)
	}
}

// total is what the consumers of one tenant have reported.
type total struct {
	running, inFlight, held, inDoubt int
	oldestInDoubt, storeDown         time.Duration
	skipped                          int64
	partitions                       map[driver.TopicPartition]consumer.PartitionGauges
}

// totals adds the snapshots up by tenant and forgets observers that are silent.
func (m *Metrics) totals() map[string]*total {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	byTenant := make(map[string]*total)
	m.observers = slices.DeleteFunc(m.observers, func(o *observer) bool {
		s := o.snapshot.Load()
		if age := now.Sub(s.at); age > StaleAfter {
			o.listed.Store(false) // the next report lists it again
			return true
		}
		tenant := ""
		if len(o.tenant) > 0 {
			tenant = o.tenant[0]
		}
		t := byTenant[tenant]
		if t == nil {
			t = &total{partitions: make(map[driver.TopicPartition]consumer.PartitionGauges, len(s.Partitions))}
			byTenant[tenant] = t
		}
		t.add(s, now)
		return false
	})
	return byTenant
}

func (t *total) add(s *snapshot, now time.Time) {
	t.running += s.Running
	t.inFlight += s.InFlight
	t.held += s.Held
	t.inDoubt += s.InDoubt
	t.skipped += s.SkippedOffsets
	if s.InDoubt > 0 {
		t.oldestInDoubt = max(t.oldestInDoubt, s.OldestInDoubt+now.Sub(s.at))
	}
	if !s.StoreDownSince.IsZero() {
		t.storeDown = max(t.storeDown, now.Sub(s.StoreDownSince))
	}
	for _, p := range s.Partitions {
		if other, twice := t.partitions[p.TopicPartition]; twice { // of two groups
			p.Committed, p.Mark = min(p.Committed, other.Committed), min(p.Mark, other.Mark)
			if p.Lag = p.Lag + other.Lag; min(p.Lag-other.Lag, other.Lag) < 0 {
				p.Lag = -1
			}
			p.InFlight += other.InFlight
			p.Paused = p.Paused || other.Paused
		}
		t.partitions[p.TopicPartition] = p
	}
}

func (m *Metrics) collectGauges(to chan<- prometheus.Metric) {
	d := m.gauges
	for tenant, t := range m.totals() {
		var labels []string
		if len(m.opts.Tenants) > 0 {
			labels = []string{tenant}
		}
		gauge := func(desc *prometheus.Desc, value float64, more ...string) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, slices.Concat(labels, more)...)
		}
		gauge(d.running, float64(t.running))
		gauge(d.inFlight, float64(t.inFlight))
		gauge(d.held, float64(t.held))
		gauge(d.inDoubt, float64(t.inDoubt))
		gauge(d.oldestInDoubt, t.oldestInDoubt.Seconds())
		gauge(d.storeDown, t.storeDown.Seconds())
		gauge(d.skipped, float64(t.skipped))
		for tp, p := range t.partitions {
			number := strconv.Itoa(int(tp.Partition))
			known := func(desc *prometheus.Desc, value int64) {
				if value >= 0 {
					gauge(desc, float64(value), tp.Topic, number)
				}
			}
			known(d.committed, p.Committed)
			known(d.mark, p.Mark)
			known(d.lag, p.Lag)
			known(d.partInFlight, int64(p.InFlight))
			paused := int64(0)
			if p.Paused {
				paused = 1
			}
			known(d.paused, paused)
		}
	}
}

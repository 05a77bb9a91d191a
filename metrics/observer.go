package metrics

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncefence/oncefence/consumer"
)

// Buckets in seconds. From first seen to seal can take from a millisecond to
// the days that a record waits for a person.
var (
	sealBuckets   = []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 6 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600}
	effectBuckets = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
)

// counters are what all consumers of a Metrics count into.
type counters struct {
	deliveries, decisions          *prometheus.CounterVec
	lateSeals, vanished            *prometheus.CounterVec
	commits, commitFailures        *prometheus.CounterVec
	firstSeenToSeal, effectSeconds *prometheus.HistogramVec
}

func newCounters(constant prometheus.Labels, tenant []string) *counters {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: constant}, slices.Concat(tenant, labels))
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets, ConstLabels: constant}, slices.Concat(tenant, labels))
	}
	return &counters{
		deliveries:      counter("oncefence_deliveries_total", "Records handed to the loop, copies and redeliveries included."),
		decisions:       counter("oncefence_decisions_total", "Decisions about deliveries, by source topic and kind of decision.", "topic", "decision"),
		lateSeals:       counter("oncefence_late_seals_total", "Applied effects whose key had moved on when they were sealed. More than a few: leases are too short for the effects."),
		vanished:        counter("oncefence_vanished_claims_total", "Applied effects whose claim the store had lost. Anything above 0: check the store's persistence and eviction."),
		commits:         counter("oncefence_commits_total", "Positions committed or tried to, one for each partition."),
		commitFailures:  counter("oncefence_commit_failures_total", "Of these, those that failed; they are tried again."),
		firstSeenToSeal: histogram("oncefence_first_seen_to_seal_seconds", "Time from the first claim of a key to its seal, by the store's clock, retries included.", sealBuckets, "topic"),
		effectSeconds:   histogram("oncefence_effect_seconds", "How long effects and probes ran, by kind of effect and class of outcome; _count is the number of runs.", effectBuckets, "kind", "class"),
	}
}

func (c *counters) all() []prometheus.Collector {
	return []prometheus.Collector{c.deliveries, c.decisions, c.lateSeals, c.vanished, c.commits, c.commitFailures, c.firstSeenToSeal, c.effectSeconds}
}

type decisionKey struct{ topic, decision string }

type runKey struct{ kind, class string }

// observer is the consumer.Observer of one consumer.
type observer struct {
	metrics *Metrics
	tenant  []string // label value, if there is the label

	deliveries, lateSeals, vanished, commits, commitFailures prometheus.Counter

	decisions *cache[decisionKey, prometheus.Counter]
	seals     *cache[string, prometheus.Observer]
	runs      *cache[runKey, prometheus.Observer]

	snapshot atomic.Pointer[snapshot]
	listed   atomic.Bool // in Metrics.observers
}

func newObserver(m *Metrics, c *counters, tenant []string) *observer {
	with := func(labels ...string) []string { return slices.Concat(tenant, labels) }
	return &observer{
		metrics: m, tenant: tenant,
		deliveries: c.deliveries.WithLabelValues(tenant...), lateSeals: c.lateSeals.WithLabelValues(tenant...),
		vanished: c.vanished.WithLabelValues(tenant...), commits: c.commits.WithLabelValues(tenant...),
		commitFailures: c.commitFailures.WithLabelValues(tenant...),
		decisions: newCache(func(k decisionKey) prometheus.Counter {
			return c.decisions.WithLabelValues(with(k.topic, k.decision)...)
		}),
		seals: newCache(func(topic string) prometheus.Observer { return c.firstSeenToSeal.WithLabelValues(with(topic)...) }),
		runs:  newCache(func(k runKey) prometheus.Observer { return c.effectSeconds.WithLabelValues(with(k.kind, k.class)...) }),
	}
}

// Delivered implements consumer.Observer.
func (o *observer) Delivered(records int) { o.deliveries.Add(float64(records)) }

// Decided implements consumer.Observer.
func (o *observer) Decided(d consumer.Decision) {
	o.decisions.get(decisionKey{d.Topic, d.Decision}).Inc()
	switch d.Decision {
	case consumer.DecisionDone:
		o.seals.get(d.Topic).Observe(d.SinceFirstSeen.Seconds())
	case consumer.DecisionLateSeal:
		o.lateSeals.Inc()
	case consumer.DecisionVanished:
		o.vanished.Inc()
	}
}

// Ran implements consumer.Observer.
func (o *observer) Ran(kind, class string, took time.Duration) {
	o.runs.get(runKey{kind, class}).Observe(took.Seconds())
}

// Committed implements consumer.Observer.
func (o *observer) Committed(partitions, failed int) {
	o.commits.Add(float64(partitions))
	o.commitFailures.Add(float64(failed))
}

// Gauges implements consumer.Observer.
func (o *observer) Gauges(g consumer.Gauges) {
	o.snapshot.Store(&snapshot{Gauges: g, at: o.metrics.now()})
	if !o.listed.Load() {
		o.metrics.list(o)
	}
}

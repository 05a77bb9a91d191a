package metrics

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/fence"
)

// OtherTenant is the label of tenants that Options.Tenants does not name.
const OtherTenant = "other"

// Options of New. The zero value and nil mean the defaults.
type Options struct {
	// ConstLabels are put on every metric. They are for several Metrics in one
	// registry: all of them need labels of the same names and other values. A
	// name that a metric uses itself is refused. Default: none.
	ConstLabels prometheus.Labels
	// Tenants names the tenants that get a label value of their own, see
	// Metrics.Consumer. Empty, the default: there is no label tenant.
	Tenants []string
}

// Metrics observes consumers and a fence: it is a consumer.Observer and a
// fence.Observer. As a consumer.Observer it is for one consumer; further ones
// get theirs from Consumer. All methods may be called from several goroutines.
//
// It is also the prometheus.Collector that New has registered.
type Metrics struct {
	*observer // of the first consumer
	*store

	opts      Options
	counters  *counters
	gauges    *gaugeDescs
	mu        sync.Mutex
	observers []*observer
	now       func() time.Time
}

var (
	_ consumer.Observer    = (*Metrics)(nil)
	_ fence.Observer       = (*Metrics)(nil)
	_ prometheus.Collector = (*Metrics)(nil)
)

// New makes the metrics and registers them. It fails when metrics of these
// names are registered there already: use the first one's Consumer for a second
// consumer, or give both of them Options.ConstLabels.
func New(reg prometheus.Registerer, opts *Options) (*Metrics, error) {
	if reg == nil {
		return nil, errors.New("metrics.New: the registerer is nil: use prometheus.DefaultRegisterer or a registry of your own")
	}
	m := &Metrics{now: time.Now}
	if opts != nil {
		m.opts = *opts
	}
	if slices.Contains(m.opts.Tenants, "") {
		return nil, errors.New("metrics.Options.Tenants names the empty tenant: leave it out, a consumer without a tenant has an empty label")
	}
	var tenant []string
	if len(m.opts.Tenants) > 0 {
		tenant = []string{"tenant"}
	}
	m.counters = newCounters(m.opts.ConstLabels, tenant)
	m.gauges = newGaugeDescs(m.opts.ConstLabels, tenant)
	m.store = newStore(m.opts.ConstLabels)
	m.observer = m.add("")
	if err := reg.Register(m); err != nil {
		var twice prometheus.AlreadyRegisteredError
		if errors.As(err, &twice) {
			return nil, fmt.Errorf("metrics.New: oncefence's metrics are registered here already: for a second consumer use Metrics.Consumer of the first Metrics, or give both metrics.Options.ConstLabels with the same names and other values: %w", err)
		}
		return nil, fmt.Errorf("metrics.New: %w", err)
	}
	return m, nil
}

// Consumer returns the observer for one more consumer. Its counts are added to
// those of the others; of their gauges the sum is reported, of positions the
// lowest, of ages the highest. With Options.Tenants they are told apart by the
// label tenant: it is the given one if Tenants names it, empty for "", else
// OtherTenant. Without Options.Tenants the tenant is not looked at.
func (m *Metrics) Consumer(tenant string) consumer.Observer { return m.add(tenant) }

func (m *Metrics) add(tenant string) *observer {
	var labels []string
	if len(m.opts.Tenants) > 0 {
		if tenant != "" && !slices.Contains(m.opts.Tenants, tenant) {
			tenant = OtherTenant
		}
		labels = []string{tenant}
	}
	o := newObserver(m, m.counters, labels)
	return o
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(to)
	}
	for _, d := range m.gauges.all() {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(to)
	}
	m.collectGauges(to)
}

func (m *Metrics) collectors() []prometheus.Collector {
	return slices.Concat(m.counters.all(), m.store.all())
}

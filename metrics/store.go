package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	callBuckets  = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10}
	batchBuckets = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
)

// store is the fence.Observer.
type store struct {
	seconds, items *prometheus.HistogramVec
	failures       *prometheus.CounterVec
	renewals, lost prometheus.Counter
	calls          *cache[string, call]
}

// call is what is counted for one kind of request.
type call struct {
	seconds, items prometheus.Observer
	failures       prometheus.Counter
}

func newStore(constant prometheus.Labels) *store {
	s := &store{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "oncefence_store_call_seconds", Help: "How long requests to the fence store took, by operation; _count is the number of round trips.",
			Buckets: callBuckets, ConstLabels: constant,
		}, []string{"op"}),
		items: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "oncefence_store_batch_items", Help: "How many items one request carried, by operation; _sum is the number of items.",
			Buckets: batchBuckets, ConstLabels: constant,
		}, []string{"op"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "oncefence_store_item_failures_total", Help: "Items that failed or whose answer never came, by operation.", ConstLabels: constant,
		}, []string{"op"}),
		renewals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "oncefence_lease_renewals_total", Help: "Leases renewed.", ConstLabels: constant,
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "oncefence_leases_lost_total", Help: "Leases that another holder had taken over when they were to be renewed.", ConstLabels: constant,
		}),
	}
	s.calls = newCache(func(op string) call {
		return call{s.seconds.WithLabelValues(op), s.items.WithLabelValues(op), s.failures.WithLabelValues(op)}
	})
	return s
}

func (s *store) all() []prometheus.Collector {
	return []prometheus.Collector{s.seconds, s.items, s.failures, s.renewals, s.lost}
}

// StoreCall implements fence.Observer.
func (s *store) StoreCall(op string, items, failed int, took time.Duration) {
	c := s.calls.get(op)
	c.seconds.Observe(took.Seconds())
	c.items.Observe(float64(items))
	c.failures.Add(float64(failed))
}

// Renewed implements fence.Observer.
func (s *store) Renewed(renewed, lost int) {
	s.renewals.Add(float64(renewed))
	s.lost.Add(float64(lost))
}

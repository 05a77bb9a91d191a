package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// family is one gathered metric.
type family struct {
	kind, help string
	labels     []string           // names, of any of its series
	series     map[string]float64 // by label values joined with a comma; the count of a histogram
	sums       map[string]float64 // of histograms
}

// gather returns everything that reg holds, by name. It fails the test when
// what is registered is not consistent.
func gather(tb testing.TB, reg prometheus.Gatherer) map[string]family {
	tb.Helper()
	gathered, err := reg.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	all := make(map[string]family, len(gathered))
	for _, g := range gathered {
		f := family{kind: strings.ToLower(g.GetType().String()), help: g.GetHelp(), series: map[string]float64{}, sums: map[string]float64{}}
		for _, m := range g.GetMetric() {
			var names, values []string
			for _, l := range m.GetLabel() {
				names, values = append(names, l.GetName()), append(values, l.GetValue())
			}
			f.labels = names
			at := strings.Join(values, ",")
			switch f.kind {
			case "counter":
				f.series[at] = m.GetCounter().GetValue()
			case "gauge":
				f.series[at] = m.GetGauge().GetValue()
			case "histogram":
				f.series[at], f.sums[at] = float64(m.GetHistogram().GetSampleCount()), m.GetHistogram().GetSampleSum()
			default:
				tb.Fatalf("%s is a %s", g.GetName(), f.kind)
			}
		}
		all[g.GetName()] = f
	}
	return all
}

// expect compares one metric's series.
func expect(tb testing.TB, all map[string]family, name string, want map[string]float64) {
	tb.Helper()
	got := all[name].series
	for at, value := range want {
		if v, ok := got[at]; !ok || v != value {
			tb.Errorf("%s{%s} is %v (there: %v), want %v", name, at, v, ok, value)
		}
	}
	if len(got) != len(want) {
		tb.Errorf("%s has the series %v, want %v", name, got, want)
	}
}

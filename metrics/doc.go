// Package metrics counts what a consumer and its fence do, for Prometheus.
//
//	m, err := metrics.New(prometheus.DefaultRegisterer, nil)
//	...
//	store, err := redisfence.New(client, &redisfence.Options{Fence: &fence.Options{Observer: m}})
//	...
//	c, err := consumer.New(source, store, charge, &consumer.Options{Observer: m})
//
// docs/metrics.md lists every metric. Their names begin with oncefence_, and
// their labels come from closed sets: topics, partitions, decisions, kinds,
// classes and operations. Keys, ids and error texts never become labels, and a
// tenant only if Options.Tenants names it, so the number of series does not grow
// with the records.
//
// Nothing here blocks, and counting one decision allocates nothing.
package metrics

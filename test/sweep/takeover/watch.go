// Package takeover measures how long it takes until what a killed process held
// is held by another one, and until its outcome is known.
package takeover

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oncefence/oncefence/test/sweep/member"
)

// Watch follows the members of one group by their events.
type Watch struct {
	mu       sync.Mutex
	held     map[string]string    // by key: the member that holds it
	orphans  map[string]time.Time // held by a member when it died, and not settled since
	taken    map[string]bool      // of these, those that another process holds
	resolved []time.Duration
	over     []time.Duration
	counts   map[string]int
}

// New returns a watch that has seen nothing.
func New() *Watch {
	return &Watch{held: make(map[string]string), orphans: make(map[string]time.Time), taken: make(map[string]bool), counts: make(map[string]int)}
}

// Tell takes an event of a member.
func (w *Watch) Tell(name string, e member.Event) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[e.Decision]++
	switch {
	case e.Begins():
		w.held[e.Key] = name
		if died, ok := w.orphans[e.Key]; ok && !w.taken[e.Key] {
			w.taken[e.Key] = true
			w.over = append(w.over, now.Sub(died))
		}
	case e.Ends():
		delete(w.held, e.Key)
		if died, ok := w.orphans[e.Key]; ok {
			delete(w.orphans, e.Key)
			delete(w.taken, e.Key)
			w.resolved = append(w.resolved, now.Sub(died))
		}
	}
}

// Died notes that a member was killed. What it had taken over from an earlier
// one counts from now: it could not settle it.
func (w *Watch) Died(name string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, holder := range w.held {
		if holder == name {
			w.orphans[key] = at
			delete(w.held, key)
			delete(w.taken, key)
		}
	}
}

// Restart counts what nobody has taken over yet from now, where the test itself
// kept the members down.
func (w *Watch) Restart(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.orphans {
		if !w.taken[key] {
			w.orphans[key] = at
		}
	}
}

// Holds reports whether the member holds a key.
func (w *Watch) Holds(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, holder := range w.held {
		if holder == name {
			return true
		}
	}
	return false
}

// Count is how often a decision fell.
func (w *Watch) Count(decision string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[decision]
}

// Samples returns the times from a holder's death until another process held
// what it held, and until the outcome: sealed, requeued, buried, or dropped as
// settled. The start of that process is part of both.
func (w *Watch) Samples() (takenOver, resolved []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.over), slices.Clone(w.resolved)
}

// Leases says how many samples there are, their median and their maximum in
// leases, in three columns.
func Leases(samples []time.Duration, lease time.Duration) string {
	if len(samples) == 0 {
		return "0\t-\t-"
	}
	sorted := slices.Sorted(slices.Values(samples))
	return fmt.Sprintf("%d\t%.1f\t%.1f", len(sorted), float64(sorted[len(sorted)/2])/float64(lease), float64(sorted[len(sorted)-1])/float64(lease))
}

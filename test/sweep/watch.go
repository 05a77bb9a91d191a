package sweep

import (
	"slices"
	"sync"
	"time"

	"github.com/oncefence/oncefence/test/sweep/member"
)

// watch measures, for what a process held when it was killed, the time from its
// death until the next one holds it, and until the outcome: sealed, requeued,
// buried or dropped as settled.
type watch struct {
	mu                  sync.Mutex
	held                map[string]bool      // by the process that runs
	orphans             map[string]time.Time // held by a process when it died, and not settled since
	taken               map[string]bool      // of these, those that the next process holds
	resolved, takenOver []time.Duration
	events              int
}

func newWatch() *watch {
	return &watch{held: make(map[string]bool), orphans: make(map[string]time.Time), taken: make(map[string]bool)}
}

func (w *watch) tell(e member.Event) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	switch {
	case e.Begins():
		w.held[e.Key] = true
		if died, ok := w.orphans[e.Key]; ok && !w.taken[e.Key] {
			w.taken[e.Key] = true
			w.takenOver = append(w.takenOver, now.Sub(died))
		}
	case e.Ends():
		delete(w.held, e.Key)
		if died, ok := w.orphans[e.Key]; ok {
			delete(w.orphans, e.Key)
			w.resolved = append(w.resolved, now.Sub(died))
		}
	}
}

// died notes that the process was killed. What an earlier one left counts from
// now: nobody could settle it.
func (w *watch) died(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.held {
		w.orphans[key] = at
	}
	for key := range w.orphans {
		w.orphans[key] = at
	}
	clear(w.held)
	clear(w.taken)
}

// seen is the number of events so far.
func (w *watch) seen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events
}

// Median returns the middle sample and the largest; zeros for none.
func Median(samples []time.Duration) (median, largest time.Duration) {
	if len(samples) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[len(sorted)/2], sorted[len(sorted)-1]
}

package chaos

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/oncefence/oncefence/test/sweep/takeover"
)

// Table prints the figures.
func (r Report) Table() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "group\tkills\tlines\tapplied\tduplicates\tconflicts\tdead letters\tto a person (in doubt)\tlost\ttwice\twrong\ttaken over\tmedian\tmaximum\tresolved\tmedian\tmaximum (leases)\t")
	for _, name := range slices.Sorted(maps.Keys(r.Tallies)) {
		t, f := r.Tallies[name], r.Figures[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t\n", name, f.Kills, t.Lines, t.Applied, t.Duplicates, t.Conflicts, t.DeadLetters, t.Parked,
			t.Lost, t.Twice, t.Wrong, takeover.Leases(f.TakenOver, Lease), takeover.Leases(f.Resolved, Lease))
	}
	_ = w.Flush() // to memory
	for _, name := range slices.Sorted(maps.Keys(r.Figures)) {
		f := r.Figures[name]
		fmt.Fprintf(&out, "%s: %d assignments, %d revocations, %d losses; %d claims in doubt, %d effects unknown, %d claims lost, %d late seals; sink: %d requests, %d bookings, %d questions, %d stale tokens, %d refused; %d lines in aborted transactions, %d in transactions without an answer\n",
			name, f.Rebalances, f.Revoked, f.Lost, f.InDoubt, f.Unknown, f.LostClaims, f.LateSeals,
			f.Sink.Requests, f.Sink.Bookings, f.Sink.Asked, f.Sink.Stale, f.Sink.Refused, f.Aborted, f.Unsure)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Events)) {
		fmt.Fprintf(&out, "%5d  %s\n", r.Events[name], name)
	}
	fmt.Fprintf(&out, "%5d  replies of redis lost\n", r.Eaten)
	fmt.Fprintf(&out, "redis emptied: members that ran had stopped after %.1f s, %d effects of lines sent again were repeated meanwhile; %d members started later refused, %d effects started\n",
		r.Emptied.Stopped.Seconds(), r.Emptied.Repeated, r.Emptied.Refused, r.Emptied.Applied)
	for _, said := range slices.Sorted(maps.Keys(r.SelfEnds)) {
		fmt.Fprintf(&out, "%5d members ended by themselves and were started again: %s\n", r.SelfEnds[said], said)
	}
	return out.String()
}

// Verdict is an error that says what broke the promise, or was not tried.
func (r Report) Verdict() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(r.Tallies)) {
		t := r.Tallies[name]
		if t.Lost > 0 || t.Twice > 0 || t.Wrong > 0 {
			errs = append(errs, fmt.Errorf("%s: %s", name, strings.Join(t.Faults, "\n\t")))
		}
		if sum := t.Applied + t.Duplicates + t.Conflicts + t.DeadLetters + t.Lost; sum != t.Lines || t.Lines == 0 {
			errs = append(errs, fmt.Errorf("%s: %d lines, %d accounted for", name, t.Lines, sum))
		}
	}
	for _, e := range events {
		if r.Events[e.name] == 0 {
			errs = append(errs, fmt.Errorf("no %s: that proves nothing", e.name))
		}
	}
	if r.Emptied.Refused == 0 || r.Emptied.Applied > 0 {
		errs = append(errs, fmt.Errorf("on a Redis that was emptied %d members refused and %d effects started", r.Emptied.Refused, r.Emptied.Applied))
	}
	return errors.Join(errs...)
}

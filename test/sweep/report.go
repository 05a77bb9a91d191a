package sweep

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/oncefence/oncefence/test/sweep/takeover"
)

// sorted returns the combos in the order of the tables.
func sorted(results map[Combo]Result) []Combo {
	return slices.SortedFunc(maps.Keys(results), func(a, b Combo) int {
		return strings.Compare(a.Kind+a.Store, b.Kind+b.Store)
	})
}

// Table prints the figures.
func Table(results map[Combo]Result) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "kind\tstore\tkills\tlines\tapplied\tduplicates\tconflicts\tdead letters\tof these in doubt\tlost\ttwice\twrong\ttaken over\tmedian\tmaximum\tresolved\tmedian\tmaximum (leases)\t")
	kills := 0
	for _, c := range sorted(results) {
		r := results[c]
		t := r.Tally
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t\n", c.Kind, c.Store, r.Kills, t.Lines, t.Applied, t.Duplicates, t.Conflicts,
			t.DeadLetters, t.Parked, t.Lost, t.Twice, t.Wrong, takeover.Leases(r.TakenOver, Lease), takeover.Leases(r.Resolved, Lease))
		kills += r.Kills
	}
	_ = w.Flush() // to memory
	fmt.Fprintf(&out, "%d kills\n", kills)
	for _, c := range sorted(results) {
		if points := results[c].Unreached(c); len(points) > 0 {
			fmt.Fprintf(&out, "%s on %s was never killed at %s\n", c.Kind, c.Store, strings.Join(points, ", "))
		}
	}
	return out.String()
}

// Verdict is an error that says what broke the promise, or was not tried.
func Verdict(results map[Combo]Result) error {
	var errs []error
	for _, c := range sorted(results) {
		r := results[c]
		if r.Kills == 0 || r.Tally.Lines == 0 {
			errs = append(errs, fmt.Errorf("%s on %s: %d kills over %d lines prove nothing", c.Kind, c.Store, r.Kills, r.Tally.Lines))
		}
		twice := r.Tally.Twice
		if c.Kind == "at-least-once" {
			twice = 0 // as promised
		}
		if r.Tally.Lost > 0 || twice > 0 || r.Tally.Wrong > 0 {
			errs = append(errs, fmt.Errorf("%s on %s: %s", c.Kind, c.Store, strings.Join(r.Tally.Faults, "\n\t")))
		}
		if sum := r.Tally.Applied + r.Tally.Duplicates + r.Tally.Conflicts + r.Tally.DeadLetters + r.Tally.Lost; sum != r.Tally.Lines {
			errs = append(errs, fmt.Errorf("%s on %s: %d lines, %d accounted for", c.Kind, c.Store, r.Tally.Lines, sum))
		}
		if points := r.Unreached(c); len(points) > 0 {
			errs = append(errs, fmt.Errorf("%s on %s: never killed at %s", c.Kind, c.Store, strings.Join(points, ", ")))
		}
	}
	return errors.Join(errs...)
}

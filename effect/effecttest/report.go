package effecttest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/oncefence/oncefence/fence/driver"
)

// Result is what became of a row.
type Result uint8

const (
	// NotTried: the row says what was missing.
	NotTried Result = iota
	// Passed: the effect keeps the rule.
	Passed
	// Failed: it does not.
	Failed
)

// String returns "not tried", "passed" or "FAILED".
func (r Result) String() string {
	switch r {
	case Passed:
		return "passed"
	case Failed:
		return "FAILED"
	case NotTried:
	}
	return "not tried"
}

// Row is one case.
type Row struct {
	// Name is the case, such as "crash after the effect".
	Name string
	// Rule is what an effect of this kind must do there.
	Rule   string
	Result Result
	// Verdict says what happened and what to do about it. It may be empty for
	// a passed row.
	Verdict string
}

// Report is the outcome of all cases, in the order in which they were tried.
type Report struct {
	Kind driver.Kind
	Rows []Row
}

// Err returns nil if no row failed, else one error with every failed row. Rows
// that were not tried are no failures; String shows them.
func (r Report) Err() error {
	var errs []error
	for _, row := range r.Rows {
		if row.Result == Failed {
			errs = append(errs, fmt.Errorf("%s: %s", row.Name, row.Verdict))
		}
	}
	return errors.Join(errs...)
}

// Row returns the row of that name.
func (r Report) Row(name string) (Row, bool) {
	for _, row := range r.Rows {
		if row.Name == name {
			return row, true
		}
	}
	return Row{}, false
}

// String returns the report as text, one row after the other.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "effect of kind %v\n", r.Kind)
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "%-9s  %s\n           rule: %s\n", row.Result, row.Name, row.Rule)
		if row.Verdict != "" {
			fmt.Fprintf(&b, "           %s\n", row.Verdict)
		}
	}
	return b.String()
}

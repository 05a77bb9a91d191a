package effecttest

import "testing"

// Test runs the cases (see Run) and makes a subtest of each row: a failed row
// fails it with the rule and the verdict, one that was not tried is skipped
// with the reason.
func Test(t *testing.T, c Config) {
	t.Helper()
	for _, row := range Run(t.Context(), c).Rows {
		t.Run(row.Name, func(t *testing.T) { show(t, row) })
	}
}

func show(t testing.TB, row Row) {
	t.Helper()
	switch row.Result {
	case Failed:
		t.Errorf("%s\nrule: %s", row.Verdict, row.Rule)
	case NotTried:
		t.Skip("NOT TRIED: " + row.Verdict)
	case Passed:
		if row.Verdict != "" {
			t.Log(row.Verdict)
		}
	}
}

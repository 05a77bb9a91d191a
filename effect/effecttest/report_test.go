package effecttest_test

import (
	"strings"
	"testing"

	"github.com/oncefence/oncefence/effect/effecttest"
	"github.com/oncefence/oncefence/fence/driver"
)

var report = effecttest.Report{Kind: driver.KindProbed, Rows: []effecttest.Row{
	{Name: "first run", Rule: "once", Result: effecttest.Passed},
	{Name: "crash", Rule: "still once", Result: effecttest.Failed, Verdict: "twice: dedupe"},
	{Name: "refused", Rule: "temporary", Result: effecttest.NotTried, Verdict: "give Refuse"},
	{Name: "late", Rule: "true", Result: effecttest.Failed, Verdict: "false: look"},
}}

func TestReportErr(t *testing.T) {
	err := report.Err()
	if err == nil || err.Error() != "crash: twice: dedupe\nlate: false: look" {
		t.Errorf("Err = %v", err)
	}
	if err := (effecttest.Report{Rows: []effecttest.Row{report.Rows[0], report.Rows[2]}}).Err(); err != nil {
		t.Errorf("Err without a failed row = %v", err)
	}
}

func TestReportString(t *testing.T) {
	want := strings.Join([]string{
		"effect of kind probed",
		"passed     first run",
		"           rule: once",
		"FAILED     crash",
		"           rule: still once",
		"           twice: dedupe",
		"not tried  refused",
		"           rule: temporary",
		"           give Refuse",
		"FAILED     late",
		"           rule: true",
		"           false: look",
		"",
	}, "\n")
	if got := report.String(); got != want {
		t.Errorf("String:\n%s\nwant:\n%s", got, want)
	}
}

func TestReportRow(t *testing.T) {
	if row, ok := report.Row("crash"); !ok || row.Verdict != "twice: dedupe" {
		t.Errorf("Row = %+v, %v", row, ok)
	}
	if row, ok := report.Row("none"); ok {
		t.Errorf("Row of no case = %+v", row)
	}
}

func TestResultString(t *testing.T) {
	for result, want := range map[effecttest.Result]string{
		effecttest.Passed: "passed", effecttest.Failed: "FAILED", effecttest.NotTried: "not tried", effecttest.Result(9): "not tried",
	} {
		if got := result.String(); got != want {
			t.Errorf("Result(%d) = %q, want %q", result, got, want)
		}
	}
}

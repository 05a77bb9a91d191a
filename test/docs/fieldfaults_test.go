package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	faultRow = regexp.MustCompile(`(?m)^\| (BL-\d{3}) \| ([^|]+) \| ([^|]+) \|$`)
	// citedTest is a test with its folder, citedRule a rule of a suite.
	citedTest = regexp.MustCompile("`((?:[a-z]+/)*[a-z]+)\\.(Test[A-Za-z0-9_]+|Fuzz[A-Za-z0-9_]+)`")
	citedRule = regexp.MustCompile("`(fencetest|consumertest) ([a-z]+/[a-z-]+)`")
	ruleName  = regexp.MustCompile(`Name: "([^"]+)"`)
)

// docs/field-faults.md says of every fault which test shows the right outcome,
// or why it does not apply, and what it names is there.
func TestFieldFaults(t *testing.T) {
	const name = "docs/field-faults.md"
	text := read(t, name)
	rules := map[string]map[string]bool{
		"fencetest":    ruleNames(t, "fence/fencetest"),
		"consumertest": ruleNames(t, "consumer/consumertest"),
	}
	for _, cited := range citedTest.FindAllStringSubmatch(text, -1) {
		if !testExists(t, cited[1], cited[2]) {
			t.Errorf("%s names %s.%s: there is no such test", name, cited[1], cited[2])
		}
	}
	for _, cited := range citedRule.FindAllStringSubmatch(text, -1) {
		if !rules[cited[1]][cited[2]] {
			t.Errorf("%s names the %s rule %s: there is none", name, cited[1], cited[2])
		}
	}
	rows := faultRow.FindAllStringSubmatch(text, -1)
	if lines := strings.Count(text, "\n| BL-"); lines != len(rows) || lines < 100 {
		t.Errorf("%d of %d rows can be read: this test sees too little", len(rows), lines)
	}
	before := ""
	for _, row := range rows {
		id, shown := row[1], row[3]
		if id <= before {
			t.Errorf("%s stands after %s", id, before)
		}
		before = id
		cited := len(citedTest.FindAllString(shown, -1)) + len(citedRule.FindAllString(shown, -1))
		if reason, excused := strings.CutPrefix(shown, "Does not apply: "); cited == 0 && !excused || excused && len(reason) < 10 {
			t.Errorf("%s: no test, and no reason why none applies: %s", id, shown)
		}
		// Whatever looks like a name of a test must be one that was checked.
		if loose := strings.Count(shown, "Test") - len(citedTest.FindAllString(shown, -1)); loose > 0 {
			t.Errorf("%s: a test is named in another form than folder.TestName in backquotes: %s", id, shown)
		}
	}
}

// testExists reports whether a folder's test files declare a function.
func testExists(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains("\n"+string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}

// ruleNames are the rules of a suite.
func ruleNames(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "rules_*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range ruleName.FindAllStringSubmatch(string(text), -1) {
			names[found[1]] = true
		}
	}
	if len(names) < 20 {
		t.Fatalf("%s: only %d rules found: this test looks in the wrong place", folder, len(names))
	}
	return names
}

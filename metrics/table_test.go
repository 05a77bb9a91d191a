package metrics_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oncefence/oncefence/metrics"
)

// The table in docs/metrics.md names what is registered, and nothing else, with
// the type, labels and text that a scrape shows.
func TestTable(t *testing.T) {
	m, reg := newMetrics(t, &metrics.Options{Tenants: []string{"acme"}})
	decide(m, 1)
	want := map[string]string{}
	for name, f := range gather(t, reg) {
		labels := slices.Clone(f.labels)
		for i, l := range labels {
			labels[i] = "`" + l + "`"
		}
		labels = slices.DeleteFunc(labels, func(l string) bool { return l == "`tenant`" })
		tenant := len(labels) != len(f.labels)
		if store := strings.HasPrefix(name, "oncefence_store_") && name != "oncefence_store_down_seconds" || strings.HasPrefix(name, "oncefence_lease"); store == tenant {
			t.Errorf("%s: has the label tenant: %v, is about the store: %v", name, tenant, store)
		}
		want[name] = fmt.Sprintf("| `%s` | %s | %s | %s |", name, f.kind, strings.Join(labels, ", "), f.help)
	}
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(doc)) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |"); ok && strings.HasPrefix(name, "oncefence_") {
			if got[name] != "" {
				t.Errorf("%s stands twice in the table", name)
			}
			got[name] = strings.TrimSuffix(line, "\n")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("docs/metrics.md: has  %s\n                 want %s", got[name], want[name])
		}
	}
	for name := range got {
		if want[name] == "" {
			t.Errorf("docs/metrics.md: there is no metric %s", name)
		}
	}
}

// Every decision that the loop knows stands in the document with its meaning,
// and the tests here report it.
func TestDecisionsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := parser.ParseFile(token.NewFileSet(), "../consumer/observe.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	ast.Inspect(source, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Decision") {
			return true
		}
		known++
		decision, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(doc), "| `"+decision+"` | ") {
			t.Errorf("docs/metrics.md does not say what the decision %s means", decision)
		}
		if !slices.Contains(decisions, decision) {
			t.Errorf("the tests of package metrics do not know the decision %s", decision)
		}
		return true
	})
	if known < len(decisions) {
		t.Errorf("found %d decisions in package consumer, %d are known here", known, len(decisions))
	}
}

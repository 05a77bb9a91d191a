// Package deps holds the tests of what this module's packages import and of
// what that costs those who import them.
package deps

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/oncefence/oncefence"

// pkg is what go list tells about one package.
type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// folder is the package's path within the module.
func (p pkg) folder() string { return folderOf(p.ImportPath) }

// list returns the module's packages under the given build tags.
func list(t *testing.T, tags string) map[string]pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags="+tags, "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = "../.."
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, complaint.String())
	}
	found := map[string]pkg{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return found
		case err != nil:
			t.Fatal(err)
		}
		found[p.folder()] = p
	}
}

func TestImports(t *testing.T) {
	for _, tags := range []string{"", "faults,invariants"} {
		packages := list(t, tags)
		if len(packages) < 10 {
			t.Fatalf("go list found %d packages: this test looks in the wrong place", len(packages))
		}
		for _, violation := range check(packages) {
			t.Error(violation)
		}
	}
}

// check returns a sentence per import that no rule allows, sorted.
func check(packages map[string]pkg) []string {
	var violations []string
	for folder, p := range packages {
		r, ok := ruleOf(folder)
		if !ok {
			violations = append(violations, fmt.Sprintf("%s: no rule: say in test/deps/rules_test.go what it may import", folder))
			continue
		}
		for _, path := range p.Imports {
			if !r.allows(path) {
				violations = append(violations, fmt.Sprintf("%s imports %s: %s", folder, path, r.why))
			}
		}
		may := reach(packages, folder)
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			if r.allows(path) || testMay(packages, may, folder, path) {
				continue
			}
			violations = append(violations, fmt.Sprintf(
				"a test of %s imports %s: a test's imports land in the go.sum of everybody who imports the package, so tests that need more than the package live below test/ (and %s)",
				folder, path, r.why,
			))
		}
	}
	slices.Sort(violations)
	return slices.Compact(violations)
}

// testMay tells whether a test of folder may import what the folder itself may
// not: the folder, and such packages of this module as need no third-party
// module that the folder does not need.
func testMay(packages map[string]pkg, may map[string]bool, folder, path string) bool {
	if !ours(path) {
		return false
	}
	for other := range reach(packages, folderOf(path)) {
		if !may[other] {
			return false
		}
	}
	return !strings.HasPrefix(folderOf(path), "test/") && !strings.HasPrefix(folderOf(path), "examples/") || folderOf(path) == folder
}

// reach returns the third-party import paths that a package needs, directly or
// not, with those that its rule allows.
func reach(packages map[string]pkg, folder string) map[string]bool {
	third, seen := map[string]bool{}, map[string]bool{}
	var visit func(string)
	visit = func(folder string) {
		if seen[folder] {
			return
		}
		seen[folder] = true
		for _, path := range packages[folder].Imports {
			switch {
			case ours(path):
				visit(folderOf(path))
			case !standard(path):
				third[path] = true
			}
		}
	}
	visit(folder)
	return third
}

func (r rule) allows(path string) bool {
	if standard(path) {
		return true
	}
	list := r.others
	if ours(path) {
		list, path = r.own, folderOf(path)
		if slices.Contains(list, path) {
			return true
		}
		return slices.Contains(list, anything)
	}
	return slices.ContainsFunc(list, func(allowed string) bool {
		return allowed == anything || path == allowed || strings.HasPrefix(path, allowed+"/")
	})
}

// ruleOf returns the rule of a folder: its own, or the longest ending in /...
func ruleOf(folder string) (rule, bool) {
	if r, ok := rules[folder]; ok {
		return r, true
	}
	longest := ""
	for pattern := range maps.Keys(rules) {
		above, ok := strings.CutSuffix(pattern, "/...")
		if ok && (folder == above || strings.HasPrefix(folder, above+"/")) && len(pattern) > len(longest) {
			longest = pattern
		}
	}
	return rules[longest], longest != ""
}

func folderOf(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// standard tells the standard library by the missing dot in its first element.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

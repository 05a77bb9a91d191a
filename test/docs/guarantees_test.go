package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// namedTest is a test and the folder that holds it: `TestX` in `path`.
	namedTest = regexp.MustCompile("`(Test[A-Za-z0-9_]*)` in `([a-z0-9/_-]+)`")
	anyTest   = regexp.MustCompile("`Test[A-Za-z0-9_]*`")
	numbered  = regexp.MustCompile(`^\d+\. `)
)

const guarantees = "docs/guarantees.md"

// Every test that the guarantee names exists, and is named with its folder.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	text := strings.Join(strings.Fields(read(t, guarantees)), " ") // a name may stand across lines
	found := namedTest.FindAllStringSubmatch(text, -1)
	if len(found) < 20 {
		t.Errorf("%s names %d tests: this test sees too little", guarantees, len(found))
	}
	if all := anyTest.FindAllString(text, -1); len(all) != len(found) {
		t.Errorf("%s names %d tests, %d of them with a folder: write `TestX` in `path`", guarantees, len(all), len(found))
	}
	folders := map[string]map[string]bool{}
	for _, f := range found {
		name, folder := f[1], f[2]
		if folders[folder] == nil {
			folders[folder] = tests(t, folder)
		}
		if !folders[folder][name] {
			t.Errorf("%s names %s in %s, which does not exist", guarantees, name, folder)
		}
	}
}

// Every numbered sentence of the guarantee names a test.
func TestEverySentenceOfTheGuaranteeNamesATest(t *testing.T) {
	var sentences []string
	inside := false
	for line := range strings.Lines(read(t, guarantees)) {
		switch {
		case numbered.MatchString(line):
			sentences, inside = append(sentences, line), true
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			inside = false
		case inside:
			sentences[len(sentences)-1] += line
		}
	}
	if len(sentences) < 10 {
		t.Errorf("%s has %d sentences: this test sees too little", guarantees, len(sentences))
	}
	for _, s := range sentences {
		if !anyTest.MatchString(s) {
			t.Errorf("%s: no test is named for: %s", guarantees, strings.TrimSpace(s))
		}
	}
}

// tests returns the names of the tests in a folder.
func tests(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := os.ReadDir(filepath.Join(root, folder))
	if err != nil {
		t.Errorf("%s: %v", guarantees, err)
		return names
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, folder, file.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}

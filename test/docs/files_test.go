// Package docs holds the tests of what the documents say about the code: the
// README's program is the one that is compiled, links lead somewhere, and
// commands name what is there.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/oncefence/oncefence"
)

// read returns a file of the repository; a missing one is a failure.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documents are the files whose links and commands are checked, by their names
// in the repository.
func documents(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md", "DESIGN.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			name, relErr := filepath.Rel(root, path)
			if relErr != nil {
				return relErr
			}
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 6 {
		t.Fatalf("found only the documents %v: this test looks in the wrong place", names)
	}
	return names
}

// split returns a document's prose and its code blocks, fences left out. Line
// breaks of the other part are kept, so that both read as before.
func split(text string) (prose, code string) {
	inside := false
	var p, c strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			inside = !inside
		case inside:
			c.WriteString(line)
		default:
			p.WriteString(line)
		}
	}
	return p.String(), c.String()
}

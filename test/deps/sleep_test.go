package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestNoTestSleeps: in a testing/synctest bubble time.Sleep passes time that
// costs none; elsewhere it is a guess that is too long on a good day and too
// short on a bad one.
func TestNoTestSleeps(t *testing.T) {
	root := filepath.Join("..", "..")
	looked := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		looked++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		if sleeps(file) && !usesBubbles(filepath.Dir(path)) {
			t.Errorf("%s sleeps outside testing/synctest: wait on a condition or a channel with a deadline", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked < 10 {
		t.Fatalf("only %d test files found below %s", looked, root)
	}
}

func sleeps(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
				found = true
			}
		}
		return true
	})
	return found
}

// usesBubbles reports whether a test file of the folder imports
// testing/synctest: a helper that sleeps may stand in another file than the
// bubble.
func usesBubbles(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return false
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return false
		}
		for _, i := range file.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); path == "testing/synctest" {
				return true
			}
		}
	}
	return false
}

package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named is a Go identifier of this module in backquotes, with its folder:
// `consumer.loop.end`, `fence/driver.Claim.Decide`.
var named = regexp.MustCompile("`((?:consumer|fence|effect|internal|requeue)(?:/[a-z]+)*)\\.([A-Za-z]+(?:\\.[A-Za-z]+)?)`")

// What docs/model.md calls the code of a step is in the code, and each step of
// the model stands in it.
func TestDocumentNamesTheCode(t *testing.T) {
	text, err := os.ReadFile("../../docs/model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n## Which step is which code\n")
	if !ok {
		t.Fatal("docs/model.md has no section that says which step is which code")
	}
	declared := make(map[string]map[string]bool)
	names := named.FindAllStringSubmatch(table, -1)
	for _, name := range names {
		folder := name[1]
		if declared[folder] == nil {
			declared[folder] = declarations(t, "../../"+folder)
		}
		if !declared[folder][name[2]] {
			t.Errorf("docs/model.md names `%s.%s`: there is nothing of that name", folder, name[2])
		}
	}
	if len(names) < 60 {
		t.Errorf("only %d names were checked: this test sees too little", len(names))
	}
	model, err := sources.ReadFile("claim.pml")
	if err != nil {
		t.Fatal(err)
	}
	_, steps, _ := strings.Cut(string(model), "/* What a worker does next.")
	steps, _, _ = strings.Cut(steps, "typedef")
	for _, step := range regexp.MustCompile(`#define ([A-Z_]+) \d+`).FindAllStringSubmatch(steps, -1) {
		if step[1] != "IDLE" && step[1] != "IN_FLIGHT" && !regexp.MustCompile(`\b`+step[1]+`\b`).MatchString(table) {
			t.Errorf("docs/model.md does not say which code the step %s is", step[1])
		}
	}
}

// declarations returns a folder's functions, types, methods, interface methods
// and fields, the latter three as Type.Name. Test files are left out.
func declarations(t *testing.T, folder string) map[string]bool {
	t.Helper()
	out := make(map[string]bool)
	files, err := fs.Glob(os.DirFS(folder), "*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d Go files, %v", folder, len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				out[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						out[s.Name.Name] = true
						members(s, out)
					}
				}
			}
		}
	}
	return out
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return "?."
}

func members(s *ast.TypeSpec, out map[string]bool) {
	var fields *ast.FieldList
	switch of := s.Type.(type) {
	case *ast.StructType:
		fields = of.Fields
	case *ast.InterfaceType:
		fields = of.Methods
	default:
		return
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			out[s.Name.Name+"."+name.Name] = true
		}
	}
}

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// goCommand is a go command with its arguments, in a code block or in
	// backquotes.
	goCommand = regexp.MustCompile("(?m)(?:^|[`\\s])go (?:run|test|build|vet|install|generate) +([^`\n#|]*)")
	// makeCommand is a call of make with a target.
	makeCommand = regexp.MustCompile("(?m)(?:^\\s*|`)make ([a-z][a-z-]*)")
	makeTarget  = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

// Every package path in a go command exists.
func TestGoCommands(t *testing.T) {
	checked := 0
	for _, name := range documents(t) {
		for _, found := range goCommand.FindAllStringSubmatch(read(t, name), -1) {
			for _, arg := range strings.Fields(found[1]) {
				folder, local := strings.CutPrefix(strings.Trim(arg, "'\""), "./")
				if !local {
					folder, local = strings.CutPrefix(folder, module+"/")
				}
				if !local {
					continue
				}
				checked++
				folder = strings.TrimSuffix(strings.TrimSuffix(folder, "..."), "/")
				if version := strings.IndexByte(folder, '@'); version >= 0 {
					folder = folder[:version]
				}
				info, err := os.Stat(filepath.Join(root, folder))
				if err != nil || !info.IsDir() && !strings.HasSuffix(folder, ".go") {
					t.Errorf("%s: `go ... %s`: there is no package %s", name, strings.TrimSpace(found[1]), arg)
				}
			}
		}
	}
	if checked < 3 {
		t.Errorf("only %d paths were checked: this test sees too little", checked)
	}
}

// Every target of make that a document names is there.
func TestMakeCommands(t *testing.T) {
	targets := map[string]bool{}
	for _, found := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[found[1]] = true
	}
	checked := 0
	for _, name := range documents(t) {
		text := read(t, name)
		_, code := split(text)
		for _, found := range append(makeCommand.FindAllStringSubmatch(code, -1), makeCommand.FindAllStringSubmatch(backquoted(text), -1)...) {
			checked++
			if !targets[found[1]] {
				t.Errorf("%s: the Makefile has no target %s", name, found[1])
			}
		}
	}
	if checked < 2 {
		t.Errorf("only %d calls of make were checked: this test sees too little", checked)
	}
}

// backquoted returns what stands in single backquotes in a document's prose,
// each with its quotes on a line.
func backquoted(text string) string {
	prose, _ := split(text)
	return strings.Join(regexp.MustCompile("`[^`\n]+`").FindAllString(prose, -1), "\n")
}

package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is a Markdown link's target: [text](target).
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Every relative link leads to a file or folder, and its fragment to a heading.
func TestLinks(t *testing.T) {
	checked := 0
	for _, name := range documents(t) {
		prose, _ := split(read(t, name))
		for _, found := range link.FindAllStringSubmatch(prose, -1) {
			target := found[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			checked++
			file, fragment, _ := strings.Cut(target, "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s: %v", name, target, err)
				continue
			}
			if fragment != "" && !anchors(read(t, to))[fragment] {
				t.Errorf("%s links to %s: %s has no heading #%s", name, target, to, fragment)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d links were checked: this test sees too little", checked)
	}
}

// anchors returns the fragments under which a document's headings are found.
func anchors(text string) map[string]bool {
	prose, _ := split(text)
	all := map[string]bool{}
	for line := range strings.Lines(prose) {
		hashes := len(line) - len(strings.TrimLeft(line, "#"))
		if hashes == 0 || hashes > 6 || line[hashes] != ' ' {
			continue
		}
		all[slug(strings.TrimSpace(line[hashes:]))] = true
	}
	return all
}

// slug is a heading's fragment: lower case, spaces as hyphens, without
// punctuation.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			return r
		}
		return -1
	}, strings.ToLower(heading))
}

func TestSlug(t *testing.T) {
	for heading, want := range map[string]string{
		"What is not promised": "what-is-not-promised", "fence.Fence and `fence.Space`": "fencefence-and-fencespace",
		"Try it: two commands, nothing but Go": "try-it-two-commands-nothing-but-go", "a_b - c": "a_b---c",
	} {
		if got := slug(heading); got != want {
			t.Errorf("%q becomes %q, want %q", heading, got, want)
		}
	}
}

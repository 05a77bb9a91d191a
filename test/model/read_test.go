package model

import (
	"strings"
	"testing"
)

// A search that ends before it has seen everything is not taken for a proof.
func TestTruncatedSearchIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		cc, pan []string
		want    string
	}{
		"depth":  {nil, []string{"-m20", "-w16"}, "too small"},
		"memory": {[]string{"-DMEMLIM=1"}, []string{"-m1000", "-w16"}, "MEMLIM"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := search(t, "-DKIND=1 "+once, c.cc, c.pan)
			if err == nil || !strings.Contains(v.output, c.want) {
				t.Errorf("error %v, want one because of %q:\n%s", err, c.want, v.output)
			}
		})
	}
}

func TestReadRefusesOtherOutput(t *testing.T) {
	good := "Full statespace search for:\n\tassertion violations\t+\n\tinvalid end states\t+\nState-vector 9 byte, depth reached 7, errors: 0\n  12 states, stored\n"
	if v, err := read(good); err != nil || v.states != 12 || v.depth != 7 {
		t.Fatalf("%+v, %v", v, err)
	}
	for what, bad := range map[string]string{
		"nothing":       "",
		"no assertions": strings.Replace(good, "violations\t+", "violations\t-", 1),
		"bit state":     strings.Replace(good, "Full statespace", "Bit statespace", 1),
		"cut off":       "Warning: Search not completed\n" + good,
	} {
		if _, err := read(bad); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

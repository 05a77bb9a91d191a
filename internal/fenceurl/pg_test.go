package fenceurl

import (
	"strings"
	"testing"
)

func TestOpenPostgresSaysWhatIsWrong(t *testing.T) {
	cases := []struct{ raw, why string }{
		{"postgres:", "postgres://USER@HOST:PORT/DATABASE"},
		{"postgres:u:secret@h", "postgres://USER@HOST:PORT/DATABASE"},
		{"postgres://u:sec/ret@h/db", "escape what is special in a password"},
		{"postgres://u:secret@h:1/db?sslmode=nope", "sslmode"},
		{"postgres://u:secret@" + closedPort(t) + "/db?sslmode=disable", "the server cannot be used"},
		{"postgresql://u:secret@" + closedPort(t) + "/db?sslmode=disable&schema=x", "the server cannot be used"},
	}
	for _, c := range cases {
		f, err := Open(t.Context(), c.raw)
		if err == nil {
			t.Errorf("%s: opened", c.raw)
			_ = f.Close()
			continue
		}
		if !strings.Contains(err.Error(), c.why) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec/ret") {
			t.Errorf("%s: %v, want %q and no password", c.raw, err, c.why)
		}
	}
}

package consumer_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/effect"
)

func TestConflictSaysWhatDiffers(t *testing.T) {
	for name, test := range map[string]struct{ first, second, want string }{
		"fields": {`{"id":1,"amount":10,"note":"secret-a"}`, `{"id":1,"amount":20,"note":"secret-a","new":true}`, "fields that differ: amount, new (only in the second)"},
		"bytes":  {"abc-secret", "abd", "first difference at byte 2, lengths 10 and 3"},
		"layout": {`{"id": 1}`, `{"id":1}`, "first difference at byte 6"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 1)
				b.produce("a", "k", test.first)
				b.produce("a", "k", test.second)
				b.runFor(5*time.Second, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
				dead := b.deadLetters()
				if len(dead) != 1 || b.ledger.count(test.first) != 1 || b.ledger.count(test.second) != 0 || b.committed(0) != 2 {
					t.Fatalf("%d dead letters, decisions %v", len(dead), b.log)
				}
				text := header(dead[0], "oncefence-error")
				if !strings.Contains(text, test.want) {
					t.Errorf("the dead letter says %q, want %q", text, test.want)
				}
				if strings.Contains(text, "secret") {
					t.Errorf("the dead letter's diagnostics show payload: %q", text)
				}
				if header(dead[0], "oncefence-fingerprint") == "" || header(dead[0], "oncefence-other-fingerprint") == "" {
					t.Errorf("a digest is missing: %v", dead[0].Headers)
				}
			})
		})
	}
}

package consumer_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
)

// Every decision is logged with the fields that tools look for, and no payload
// ever is.
func TestEveryDecisionIsLoggedWithItsFields(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		var out bytes.Buffer
		opts := b.options()
		opts.Logger = slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		answer := b.crashOrders()
		s := newSink(true, answer)
		b.runFor(30*time.Second, effect.Idempotent(s.apply, forever()), opts)
		levels := map[string]string{
			"new": "DEBUG", "done": "DEBUG", "duplicate": "DEBUG", "requeued": "INFO", "conflict": "WARN", "poison": "WARN", "dead_letter": "WARN",
			"unknown": "WARN", "in_doubt": "WARN",
		}
		seen := map[string]int{}
		for line := range strings.Lines(out.String()) {
			var l map[string]any
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			decision, ok := l["decision"].(string)
			if !ok {
				continue
			}
			seen[decision]++
			for _, field := range []string{"idempotency_key", "effect_id", "source_type", "source_id"} {
				if _, ok := l[field].(string); !ok {
					t.Errorf("%s has no %s: %s", decision, field, line)
				}
			}
			if want := levels[decision]; want != "" && l["level"] != want {
				t.Errorf("%s is logged at %v, want %s", decision, l["level"], want)
			}
			if l["source_type"] != "memory" || !strings.HasPrefix(l["source_id"].(string), "orders") {
				t.Error(line)
			}
		}
		for decision := range levels {
			if seen[decision] == 0 || seen[decision] != b.log.count(decision) {
				t.Errorf("%s: logged %d times, observed %d times", decision, seen[decision], b.log.count(decision))
			}
		}
		for _, payload := range []string{"plain 0", "a conflict", "unknown applied", "permanent\""} {
			if strings.Contains(out.String(), `"`+payload) {
				t.Errorf("the log holds the payload %q", payload)
			}
		}
	})
}

func TestAChangedPartitionCountIsSaid(t *testing.T) {
	for scope, want := range map[fence.Scope]bool{fence.ScopePartition: true, fence.ScopeID: false} {
		bubble(t, 2, func(t *testing.T, b *bench) {
			opts := b.options()
			opts.Scope = scope
			b.runFor(10*time.Second, idempotent(b.ledger.bookEffect), opts)
			for _, name := range b.broker.Topics() {
				if err := b.broker.AddPartitions(name, 2); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			opts = b.options()
			opts.Scope, opts.Logger = scope, slog.New(slog.NewTextHandler(&out, nil))
			b.runFor(3*time.Second, idempotent(b.ledger.bookEffect), opts)
			if said := strings.Contains(out.String(), "partition count has changed"); said != want {
				t.Errorf("scope %v: said %v, want %v", scope, said, want)
			}
		})
	}
}

package consumertest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/consumer/consumertest"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
)

// harness is one over a new broker, whose sources are broken first.
func harness(spoil func(b *broken)) consumertest.Harness {
	broker := memsource.NewBroker(nil)
	topics := 0
	return consumertest.Harness{
		Topic: func(_ context.Context, partitions int) (string, error) {
			topics++
			name := fmt.Sprintf("topic-%d", topics)
			return name, broker.CreateTopic(name, &memsource.TopicOptions{Partitions: partitions})
		},
		Open: func(_ context.Context, group string, names []string) (driver.Source, error) {
			b := &broken{Source: broker.Source(group, names, nil)}
			spoil(b)
			return b, nil
		},
		Produce: func(_ context.Context, records []driver.Record) error {
			for _, r := range records {
				if _, err := broker.ProduceTo(driver.TopicPartition{Topic: r.Topic, Partition: r.Partition}, r); err != nil {
					return err
				}
			}
			return nil
		},
		Committed: func(_ context.Context, group string, tp driver.TopicPartition) (int64, string, error) {
			if o, ok := broker.Committed(group, tp); ok {
				return o.Offset, o.Metadata, nil
			}
			return -1, "", nil
		},
		Lose: func(_ context.Context, source driver.Source) error {
			source.(*broken).Source.(*memsource.Source).Lose()
			return nil
		},
		Session: time.Minute,
	}
}

func TestARightSourceKeepsAllRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := consumertest.Run(t.Context(), harness(func(*broken) {}))
		if err := report.Err(); err != nil {
			t.Error(err)
		}
		if len(report.Kept) != len(consumertest.Rules()) || len(report.Skipped) > 0 {
			t.Errorf("%d rules kept of %d, %d skipped", len(report.Kept), len(consumertest.Rules()), len(report.Skipped))
		}
	})
}

func TestEveryRuleHasASourceThatBreaksIt(t *testing.T) {
	for _, r := range consumertest.Rules() {
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.rule == r.Name }) {
			t.Errorf("no source here breaks %s", r.Name)
		}
	}
}

func TestBrokenSourcesAreCaught(t *testing.T) {
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.wrong, " ", "-"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				report := consumertest.Run(t.Context(), harness(m.spoil))
				<-time.After(2 * time.Minute) // what a broken source has left behind ends
				caught := slices.ContainsFunc(report.Broken, func(b *consumertest.Broken) bool { return b.Rule.Name == m.rule })
				if !caught {
					t.Errorf("a source that %s keeps %s; broken are %v", m.wrong, m.rule, report.Err())
				}
			})
		})
	}
}

func TestRulesThatNeedMoreAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := harness(func(*broken) {})
		h.Alone, h.Lose, h.Session = true, nil, 0
		report := consumertest.Run(t.Context(), h)
		if err := report.Err(); err != nil {
			t.Error(err)
		}
		var skipped []string
		for _, r := range report.Skipped {
			skipped = append(skipped, r.Name)
		}
		for _, name := range []string{"group/share", "lost/told", "poll/stays", "pause/ends"} {
			if !slices.Contains(skipped, name) {
				t.Errorf("%s was not skipped, only %v", name, skipped)
			}
		}
	})
}

func TestHarnessThatLacksSomethingBreaksEveryRule(t *testing.T) {
	report := consumertest.Run(t.Context(), consumertest.Harness{})
	if len(report.Broken) != len(consumertest.Rules()) || !strings.Contains(report.Err().Error(), "Committed") {
		t.Errorf("%d rules broken: %v", len(report.Broken), report.Err())
	}
}

func TestRulesHaveNamesAndWords(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range consumertest.Rules() {
		if !strings.Contains(r.Name, "/") || len(r.Says) < 20 || seen[r.Name] {
			t.Errorf("rule %q says %q", r.Name, r.Says)
		}
		seen[r.Name] = true
	}
}

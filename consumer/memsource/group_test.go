package memsource_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
)

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestMembersShareAndMoveOnlyWhatMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, "a", 3)
		one := start(t, b, nil, "a")
		expect(t, "one alone", one.said(), "assigned a/0", "assigned a/1", "assigned a/2")
		two := start(t, b, nil, "a")
		expect(t, "two joined, one", one.said(), "revoked a/2")
		expect(t, "two joined, two", two.said(), "assigned a/2")
		two.Close(background)
		expect(t, "two left, two", two.said(), "revoked a/2")
		expect(t, "two left, one", one.said(), "assigned a/2")
	})
}

func TestRevokedHoldsUpTheMoveUntilTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, "a", 2)
		one := start(t, b, &memsource.SourceOptions{RebalanceTimeout: 5 * time.Second}, "a")
		one.drain = func(ctx context.Context, tps []driver.TopicPartition) {
			if errs := one.Commit(ctx, []driver.Offset{{TopicPartition: tps[0], Offset: 0, Metadata: "drained"}}); errs[0] != nil {
				t.Errorf("commit while draining: %v", errs[0])
			}
			<-ctx.Done()
		}
		one.said()
		begin := time.Now()
		two := start(t, b, nil, "a")
		expect(t, "two at once", two.said())
		fill(t, b, tp("a", 1), 1)
		if _, err := two.Poll(background, 1); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("partition moved after %v, want the rebalance timeout of 5s", took)
		}
		if a := two.last(t); a.Committed != 0 || a.Metadata != "drained" {
			t.Errorf("assignment %+v does not show the commit of the drain", a)
		}
		one.drain = nil
	})
}

func TestRebalanceGivesHigherGenerations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, "a", 1)
		one := start(t, b, nil, "a")
		before := one.last(t).Generation
		b.Rebalance("g")
		if after := one.last(t).Generation; after <= before {
			t.Errorf("generation %d after %d", after, before)
		}
		expect(t, "rebalance", one.said(), "assigned a/0", "revoked a/0", "assigned a/0")
	})
}

func TestLoseCallsNoRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, "a", 1)
		one := start(t, b, nil, "a")
		one.said()
		one.Lose()
		expect(t, "lose", one.said(), "lost a/0", "assigned a/0")
	})
}

func TestEvictedMemberLearnsAtItsCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, "a", 1)
		one := start(t, b, nil, "a")
		one.said()
		two := start(t, b, nil, "a")
		expect(t, "two waits", two.said())
		one.Evict()
		expect(t, "two has it", two.said(), "assigned a/0")
		expect(t, "one knows nothing", one.said())
		fill(t, b, tp("a", 0), 1)
		if got, _ := one.values(t); len(got) != 1 {
			t.Errorf("an evicted member polls %q, want what a broker would still give it", got)
		}
		errs := one.Commit(background, []driver.Offset{{TopicPartition: tp("a", 0), Offset: 1}})
		if !errors.Is(errs[0], driver.ErrNotOwned) {
			t.Errorf("commit of an evicted member: %v", errs[0])
		}
		if o, _ := b.Committed("g", tp("a", 0)); o.Offset != 0 {
			t.Errorf("the refused commit stands at %d", o.Offset)
		}
		expect(t, "one knows now", one.said(), "lost a/0")
	})
}

func TestAddedPartitionsStartAtTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, "a", 1)
		fill(t, b, tp("a", 0), 3)
		one := start(t, b, &memsource.SourceOptions{Start: memsource.Latest}, "a")
		if a := one.last(t); a.Committed != -1 {
			t.Errorf("first assignment %+v, want no commit", a)
		}
		if o, _ := b.Committed("g", tp("a", 0)); o.Offset != 3 {
			t.Errorf("first position committed at %d, want 3", o.Offset)
		}
		if err := b.AddPartitions("a", 1); err != nil {
			t.Fatal(err)
		}
		fill(t, b, tp("a", 1), 2)
		got, _ := one.values(t)
		expect(t, "values", got, "0", "1")
		if a := one.last(t); a.Partitions != 2 {
			t.Errorf("assignment tells %d partitions, want 2", a.Partitions)
		}
	})
}

package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// counted counts how many records its store has purged.
type counted struct {
	fencedriver.Store
	purged chan int
}

func (c counted) Purge(ctx context.Context, namespace string, limit int) (int, error) {
	n, err := c.Store.Purge(ctx, namespace, limit)
	if n > 0 {
		c.purged <- n
	}
	return n, err
}

// TestExpiredRecordsAreRemoved: a store that does not expire by itself must not
// grow for ever.
func TestExpiredRecordsAreRemoved(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		store := counted{b.store, make(chan int, 16)}
		f, err := fence.New(store, &fence.Options{Retention: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		b.fence = f
		for _, id := range []string{"a", "b", "c"} {
			b.produce(id, "k", "order "+id)
		}
		_, stop := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		b.wait(30 * time.Second)
		if len(store.purged) != 0 {
			t.Errorf("%d records were purged before their time", <-store.purged)
		}
		b.wait(2 * time.Minute)
		sum := 0
		for len(store.purged) > 0 {
			sum += <-store.purged
		}
		if sum != 3 {
			t.Errorf("%d records were purged, want 3", sum)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

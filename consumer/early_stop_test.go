package consumer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
)

// A consumer that is told to stop before it has started has stopped cleanly.
func TestStopBeforeStart(t *testing.T) {
	b := newBench(t, 1)
	for name, cause := range map[string]error{"cancelled": nil, "with a cause": errors.New("shutting down")} {
		t.Run(name, func(t *testing.T) {
			c, err := consumer.New(b.broker.Source(group, []string{topic}, nil), b.fence, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancelCause(t.Context())
			stop(cause)
			if err := c.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

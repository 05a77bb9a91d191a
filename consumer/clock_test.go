package consumer_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// jumping makes b's store one whose clock is ahead by what off says.
func (b *bench) jumping(off *atomic.Int64) {
	hook := b.hook()
	shift := func(r *fencedriver.Record, by int64) {
		for _, at := range []*int64{&r.LeaseEnd, &r.AttemptEnd, &r.Due, &r.FirstSeen, &r.SealedAt, &r.Expire} {
			if *at != 0 {
				*at += by
			}
		}
	}
	hook.onClaim = func(ctx context.Context, claims []fencedriver.Claim, _ func() []fencedriver.Claimed) []fencedriver.Claimed {
		by := off.Load()
		own := make([]fencedriver.Claim, len(claims))
		for i, c := range claims {
			c.NotAfter, c.TakeoverUntil = c.NotAfter-by, c.TakeoverUntil-by
			own[i] = c
		}
		out := b.store.Claim(ctx, "%-:"+group, own)
		for i := range out {
			out[i].Now += by
			shift(&out[i].Record, by)
		}
		return out
	}
	hook.onApply = func(_ context.Context, ts []fencedriver.Transition, pass func() []fencedriver.Applied) []fencedriver.Applied {
		by := off.Load()
		out := pass()
		for i := range out {
			out[i].Now += by
			shift(&out[i].Record, by)
		}
		return out
	}
}

// The store's clock jumps by an hour, forwards or back, while effects run and
// records wait: each effect happens once, and the work goes on.
func TestTheStoresClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forwards": time.Hour, "back": -time.Hour, "by a little": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, b *bench) {
				var off atomic.Int64
				b.jumping(&off)
				b.produce("slow", "", "slow")
				s := &script{b: b, answers: []error{effect.Temporary(errPlain), nil}}
				b.produce("retried", "", "retried")
				e := idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
					switch string(in.Payload) {
					case "slow":
						return waits(b, 40*time.Second)(ctx, in)
					case "retried":
						return s.run(ctx, in)
					}
					return b.ledger.bookEffect(ctx, in)
				})
				_, stopA := b.start(e, b.options())
				_, stopB := b.start(e, b.options())
				b.wait(500 * time.Millisecond)
				off.Store(jump.Microseconds())
				for i := range 100 {
					b.produce(fmt.Sprint("id-", i), fmt.Sprint("k", i%9), fmt.Sprint("order ", i))
					b.wait(100 * time.Millisecond)
				}
				b.broker.Rebalance(group)
				b.wait(90 * time.Second)
				if err := stopA(); err != nil {
					t.Error(err)
				}
				if err := stopB(); err != nil {
					t.Error(err)
				}
				for what, n := range b.ledger.booked {
					if n != 1 {
						t.Errorf("%s was booked %d times", what, n)
					}
				}
				if b.ledger.total() != 102 || b.committed(0)+b.committed(1) != 102 || len(b.deadLetters()) != 0 {
					t.Errorf("%d booked, committed %d, %d dead letters, decisions %v", b.ledger.total(), b.committed(0)+b.committed(1), len(b.deadLetters()), b.log)
				}
			})
		})
	}
}

package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

var errStore = errors.New("connection refused")

func TestNoEffectStartsWhileTheStoreIsDown(t *testing.T) {
	bubble(t, 2, func(t *testing.T, b *bench) {
		hook := b.hook()
		var down atomic.Bool
		hook.onClaim = func(_ context.Context, claims []fencedriver.Claim, pass func() []fencedriver.Claimed) []fencedriver.Claimed {
			if down.Load() {
				return failClaims(len(claims), errStore)
			}
			return pass()
		}
		hook.onApply = func(_ context.Context, ts []fencedriver.Transition, pass func() []fencedriver.Applied) []fencedriver.Applied {
			if down.Load() {
				return failApplies(len(ts), errStore)
			}
			return pass()
		}
		var polls atomic.Int64
		source := b.source(&memsource.SourceOptions{OnPoll: func(context.Context) error { polls.Add(1); return nil }})
		c, stop := b.startWith(source, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		b.wait(time.Second)
		down.Store(true)
		before := polls.Load()
		for i := range 60 {
			b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
			b.wait(time.Second)
		}
		if b.ledger.total() != 0 {
			t.Errorf("%d effects ran without a claim", b.ledger.total())
		}
		if n := polls.Load() - before; n < 50 {
			t.Errorf("polled %d times in a minute: a member that does not poll leaves its group", n)
		}
		for what, err := range map[string]error{"Ready": c.Ready(), "Healthy": c.Healthy()} {
			if err == nil || !strings.Contains(err.Error(), "the fence store does not answer since") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if b.log.gauge().StoreDownSince.IsZero() {
			t.Error("the gauges do not say that the store is down")
		}
		down.Store(false)
		b.wait(3 * time.Second)
		if b.ledger.total() != 60 || c.Ready() != nil || c.Healthy() != nil {
			t.Errorf("%d booked after the store came back, Ready %v, Healthy %v", b.ledger.total(), c.Ready(), c.Healthy())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The store goes away while effects run: they end with their lease, what they
// did is sealed or tried again afterwards, and nothing is committed meanwhile.
func TestTheStoreGoesAwayWhileEffectsRun(t *testing.T) {
	for name, takes := range map[string]time.Duration{"shorter than the lease": 3 * time.Second, "longer": 60 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, b *bench) {
				hook := b.hook()
				var down atomic.Bool
				hook.onApply = func(_ context.Context, ts []fencedriver.Transition, pass func() []fencedriver.Applied) []fencedriver.Applied {
					if down.Load() {
						return failApplies(len(ts), errStore)
					}
					return pass()
				}
				hook.onClaim = func(_ context.Context, cs []fencedriver.Claim, pass func() []fencedriver.Claimed) []fencedriver.Claimed {
					if down.Load() {
						return failClaims(len(cs), errStore)
					}
					return pass()
				}
				for i := range 5 {
					b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
				}
				var ended atomic.Int64
				e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
					if in.Attempt > 1 {
						return b.ledger.bookEffect(ctx, in)
					}
					begin := time.Now()
					r, err := waits(b, takes)(ctx, in)
					if err != nil {
						ended.Add(1)
						if d := time.Since(begin); d > 9*time.Second {
							t.Errorf("the context ended %v after the claim, with a lease of 10 s", d)
						}
					}
					return r, err
				}, forever())
				_, stop := b.start(e, b.options())
				b.wait(time.Second)
				down.Store(true)
				b.wait(30 * time.Second)
				if b.committed(0) != 0 {
					t.Errorf("committed %d without a seal", b.committed(0))
				}
				down.Store(false)
				b.wait(30 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if (ended.Load() == 5) != (takes > 10*time.Second) || b.ledger.total() != 5 || b.committed(0) != 5 {
					t.Errorf("%d contexts ended, %d booked, committed %d, decisions %v", ended.Load(), b.ledger.total(), b.committed(0), b.log)
				}
			})
		})
	}
}

// A claim that waits for a worker while its lease ends unrenewed was never used:
// it is no doubt.
func TestAClaimWhoseLeaseEndedUnusedIsNoDoubt(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		hook := b.hook()
		var down atomic.Bool
		hook.onApply = func(_ context.Context, ts []fencedriver.Transition, pass func() []fencedriver.Applied) []fencedriver.Applied {
			if down.Load() {
				return failApplies(len(ts), errStore)
			}
			return pass()
		}
		for i := range 3 {
			b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
		}
		e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			time.Sleep(12 * time.Second) // does not look at its context
			return b.ledger.bookEffect(ctx, in)
		}, forever())
		opts := b.options()
		opts.Concurrency = 1
		_, stop := b.start(e, opts)
		b.wait(time.Second)
		down.Store(true)
		b.wait(20 * time.Second)
		down.Store(false)
		b.wait(2 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if b.ledger.total() != 3 || b.log.count("in_doubt") != 0 {
			t.Errorf("%d booked, decisions %v", b.ledger.total(), b.log)
		}
	})
}

func TestOneItemThatFailsDoesNotHoldUpTheOthers(t *testing.T) {
	bad := idKey("id-7").Digest()
	for _, where := range []string{"claim", "seal", "unreadable"} {
		t.Run(where, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, b *bench) {
				hook := b.hook()
				var healed atomic.Bool
				var requests atomic.Int64
				hook.onClaim = func(_ context.Context, claims []fencedriver.Claim, pass func() []fencedriver.Claimed) []fencedriver.Claimed {
					out := pass()
					for i := range claims {
						if claims[i].Key == bad && where != "seal" && !healed.Load() {
							requests.Add(1)
							out[i] = fencedriver.Claimed{Err: errStore}
							if where == "unreadable" {
								out[i].Err = fencedriver.ErrUnreadable
							}
						}
					}
					return out
				}
				hook.onApply = func(_ context.Context, ts []fencedriver.Transition, pass func() []fencedriver.Applied) []fencedriver.Applied {
					out := pass()
					for i := range ts {
						if ts[i].Key == bad && ts[i].Op == fencedriver.Seal && where == "seal" && !healed.Load() {
							requests.Add(1)
							out[i] = fencedriver.Applied{Err: errStore}
						}
					}
					return out
				}
				for i := range 20 {
					b.produce(fmt.Sprint("id-", i), "", fmt.Sprint("order ", i))
				}
				c, stop := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
				b.wait(3 * time.Second)
				var slowest time.Duration
				for i := range 20 {
					start := time.Now()
					b.produce(fmt.Sprint("late-", i), "", "late")
					for b.ledger.count("late") != i+1 && time.Since(start) < 10*time.Second {
						b.wait(time.Millisecond)
					}
					slowest = max(slowest, time.Since(start))
				}
				if slowest > 20*time.Millisecond {
					t.Errorf("a record took up to %v beside the one that fails", slowest)
				}
				b.wait(100 * time.Second)
				if n := requests.Load(); n < 50 || n > 400 {
					t.Errorf("asked %d times in about 100 s", n)
				}
				if b.committed(0) != 7 {
					t.Errorf("committed %d, want 7: the one that fails is not settled", b.committed(0))
				}
				if err := c.Ready(); err != nil {
					t.Errorf("Ready: %v", err)
				}
				if err := c.Healthy(); err == nil || !strings.Contains(err.Error(), "stands at offset 7 since") {
					t.Errorf("Healthy: %v", err)
				}
				healed.Store(true)
				b.wait(15 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if b.committed(0) != 40 || b.ledger.count("order 7") != 1 {
					t.Errorf("committed %d, booked %d times", b.committed(0), b.ledger.count("order 7"))
				}
			})
		})
	}
}

// The store did what it was asked for, and its answer was lost: at every
// request in turn, and at all of them once.
func TestAnswersOfTheStoreAreLost(t *testing.T) {
	kinds := map[string]func(effect.Func) effect.Effect{
		"idempotent": idempotent, "at-most-once": atMostOnce,
		"probed": func(f effect.Func) effect.Effect {
			ask := func(context.Context, effect.Input) (effect.Finding, error) { return effect.NotApplied(), nil }
			return effect.Probed(f, ask, effect.ProbedOptions{Settled: effect.Immediately})
		},
	}
	for name, kind := range kinds {
		for _, every := range []int64{1, 2, 3} {
			t.Run(fmt.Sprint(name, " every ", every), func(t *testing.T) {
				bubble(t, 1, func(t *testing.T, b *bench) {
					hook := b.hook()
					var n atomic.Int64
					var mu sync.Mutex
					lost, again := make(map[string]int64), make(map[string]int64)
					isLost := func(counts map[string]int64, at string) bool {
						mu.Lock()
						defer mu.Unlock()
						counts[at]++
						return counts[at]%(every+1) != 0
					}
					hook.onClaim = func(_ context.Context, claims []fencedriver.Claim, pass func() []fencedriver.Claimed) []fencedriver.Claimed {
						out := pass()
						if isLost(lost, string(claims[0].Key[:])) {
							n.Add(1)
							return failClaims(len(claims), context.DeadlineExceeded)
						}
						return out
					}
					hook.onApply = func(_ context.Context, ts []fencedriver.Transition, pass func() []fencedriver.Applied) []fencedriver.Applied {
						out := pass()
						if ts[0].Op != fencedriver.Renew && isLost(again, fmt.Sprint(ts[0].Op, ts[0].Key)) {
							n.Add(1)
							return failApplies(len(ts), context.DeadlineExceeded)
						}
						return out
					}
					for i := range 6 {
						b.produce(fmt.Sprint("id-", i), "k", fmt.Sprint("order ", i))
					}
					e := kind(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
						switch {
						case string(in.Payload) == "order 2" && in.Attempt == 1:
							return effect.Receipt{}, effect.Temporary(errPlain)
						case string(in.Payload) == "order 4":
							return effect.Receipt{}, effect.Permanent(errPlain)
						}
						return b.ledger.bookEffect(ctx, in)
					})
					b.runFor(2*time.Minute, e, b.options())
					if b.ledger.total() != 5 || len(b.deadLetters()) != 1 || b.committed(0) != 6 || b.log.count("in_doubt") != 0 {
						t.Errorf("%d booked, %d dead letters, committed %d, decisions %v", b.ledger.total(), len(b.deadLetters()), b.committed(0), b.log)
					}
					for i := range 6 {
						if c := b.ledger.count(fmt.Sprint("order ", i)); c > 1 {
							t.Errorf("order %d was booked %d times", i, c)
						}
					}
					if n.Load() < 8 {
						t.Errorf("only %d answers were lost", n.Load())
					}
				})
			})
		}
	}
}

// A claim whose answer never came is released when the partition goes away, so
// that the next owner finds nothing in doubt.
func TestAClaimWithoutAnAnswerIsReleasedAtTheStop(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		hook := b.hook()
		hook.onClaim = func(_ context.Context, claims []fencedriver.Claim, pass func() []fencedriver.Claimed) []fencedriver.Claimed {
			pass()
			return failClaims(len(claims), context.DeadlineExceeded)
		}
		b.produce("a", "k", "order a")
		b.runFor(3*time.Second, atMostOnce(b.ledger.bookEffect), b.options())
		if r := b.record("a"); r.State != fencedriver.Absent {
			t.Fatalf("the record is left %s", r.State)
		}
		b.fence = b.fenceOver(b.store)
		b.runFor(3*time.Second, atMostOnce(b.ledger.bookEffect), b.options())
		if b.ledger.total() != 1 || b.log.count("in_doubt") != 0 {
			t.Errorf("%d booked, decisions %v", b.ledger.total(), b.log)
		}
	})
}

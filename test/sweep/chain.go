package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/internal/fault"
	"github.com/oncefence/oncefence/internal/fenceurl"
	"github.com/oncefence/oncefence/requeue"
	"github.com/oncefence/oncefence/test/sweep/account"
	"github.com/oncefence/oncefence/test/sweep/ledger"
	"github.com/oncefence/oncefence/test/sweep/member"
	"github.com/oncefence/oncefence/test/sweep/takeover"
)

const (
	// Lease of the members: renewal and margin must work at this.
	Lease = 250 * time.Millisecond
	// Settled of the probed sink: longer than a request can be on its way.
	Settled = ledger.SlowFor + 100*time.Millisecond

	partitions = 4
	stalled    = 60 * time.Second
	// stopsWithin is less than the members' drain time: a stop that takes longer
	// hangs.
	stopsWithin = 4 * time.Second
)

var schedule = requeue.Schedule{Delays: []time.Duration{50 * time.Millisecond, 100 * time.Millisecond}}

// chain is one run of members on what the killed ones before them left.
type chain struct {
	combo   Combo
	seed    uint64
	program string
	random  *rand.Rand
	cluster *kfake.Cluster
	broker  *account.Broker
	ledger  *ledger.Ledger
	source  *account.Source
	lines   []account.Line
	cfg     member.Settings
	watch   *takeover.Watch
	log     *bytes.Buffer
	dir     string
	res     Result
}

func openChain(ctx context.Context, o Options, combo Combo, seed uint64) (*chain, error) {
	c := &chain{
		combo: combo, seed: seed, program: o.Program, random: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // replayed by its seed
		source: account.NewSource(seed, "o"), watch: takeover.New(), log: &bytes.Buffer{}, res: newResult(),
	}
	var err error
	if c.dir, err = os.MkdirTemp("", "sweep-"); err != nil {
		return nil, err
	}
	if c.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(0)); err != nil {
		return c, fmt.Errorf("embedded broker: %w", err)
	}
	group := fmt.Sprintf("sweep-%s-%x-%x", combo.Kind, seed, time.Now().UnixNano())
	if c.broker, err = account.Open(ctx, c.cluster.ListenAddrs(), "orders", group, partitions, schedule); err != nil {
		return c, err
	}
	if c.ledger, err = ledger.Start(member.Sink(combo.Kind)); err != nil {
		return c, err
	}
	c.cfg = member.Settings{
		Brokers: c.broker.Addrs, Topic: c.broker.Topic, Group: group, Instance: "member", Fence: "mem:", Kind: combo.Kind, Sink: c.ledger.URL,
		Lease: Lease, Delays: schedule.Delays, Settled: Settled, Session: 10 * time.Second, MaxCrashes: 1000, Level: 8, // errors
	}
	switch combo.Store {
	case "bolt":
		c.cfg.Fence = "bolt:" + c.dir + "/fence.db"
	case "redis":
		c.cfg.Fence = o.Redis
	}
	return c, nil
}

func (c *chain) close() error {
	if c.broker != nil {
		c.broker.Close()
	}
	if c.cluster != nil {
		c.cluster.Close()
	}
	var err error
	if c.ledger != nil {
		err = c.ledger.Close()
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// send sends n more lines.
func (c *chain) send(ctx context.Context, lines []account.Line) error {
	if err := c.broker.Send(ctx, lines); err != nil {
		return err
	}
	c.lines = append(c.lines, lines...)
	return nil
}

func (c *chain) tell(e member.Event) { c.watch.Tell(c.cfg.Instance, e) }

// died notes the death of the only process that there was.
func (c *chain) died(at time.Time) {
	c.watch.Died(c.cfg.Instance, at)
	c.watch.Restart(at)
	c.res.Kills++
}

// fire plays one round: it reports whether the member was killed at the point.
func (c *chain) fire(ctx context.Context, s shot) (bool, error) {
	if err := c.send(ctx, c.source.Lines(14+c.random.IntN(10))); err != nil {
		return false, err
	}
	p, err := member.Start(c.program, c.cfg, fmt.Sprintf("%s:%d", s.point, s.nth), c.log, c.tell)
	if err != nil {
		return false, err
	}
	nudged, joined := false, false
	seen := func() int { return c.watch.Count(consumer.DecisionNew) + c.watch.Count(consumer.DecisionDone) }
	before := seen()
	err = c.wait(ctx, p, func() error {
		if nudged || seen() == before {
			return nil
		}
		switch s.point {
		case fault.RevokedBefore: // another member takes partitions away
			nudged, joined = true, true
			return p.Join()
		case fault.ReleaseAfter: // a stop gives back what has not started
			nudged = true
			p.AskToStop()
		}
		return nil
	})
	if joined {
		if err := c.broker.Remove(ctx, c.cfg.Instance+"-1"); err != nil {
			return false, fmt.Errorf("remove the second member: %w", err)
		}
	}
	if err != nil || !p.Killed() {
		return false, err
	}
	c.died(p.At)
	return true, nil
}

// wait returns when the member was killed or has ended cleanly, which it is
// asked to once all is done.
func (c *chain) wait(ctx context.Context, p *member.Process, nudge func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	asked := time.Now()
	var stopping time.Time
	for until := time.Now().Add(stalled); ; {
		select {
		case <-p.Ended:
			if p.Killed() || p.Err == nil {
				return nil
			}
			return fmt.Errorf("a member ended badly: %w", p.Err)
		case <-ctx.Done():
			p.Kill()
			return context.Cause(ctx)
		case <-tick.C:
		}
		if err := nudge(); err != nil {
			continue // it has just ended
		}
		if time.Now().After(until) || (!stopping.IsZero() && time.Since(stopping) > stopsWithin) {
			_ = p.Signal(quit) // its goroutines go to the log
			<-p.Ended
			return fmt.Errorf("not caught up after %v, or not stopped after %v", stalled, stopsWithin)
		}
		if time.Since(asked) < 40*time.Millisecond {
			continue
		}
		if asked = time.Now(); stopping.IsZero() && c.broker.CaughtUp(ctx) {
			stopping = asked
			p.AskToStop()
		}
	}
}

// finish lets a member without faults catch up, and accounts for all lines.
func (c *chain) finish(ctx context.Context) error {
	p, err := member.Start(c.program, c.cfg, "", c.log, c.tell)
	if err != nil {
		return err
	}
	if err := c.wait(ctx, p, func() error { return nil }); err != nil {
		return err
	}
	return c.account(ctx)
}

func (c *chain) account(ctx context.Context) error {
	c.res.TakenOver, c.res.Resolved = c.watch.Samples()
	if c.combo.Kind == "at-least-once" {
		t, err := account.Take(ctx, c.broker, nil, c.ledger, c.lines)
		c.res.Tally = t
		return err
	}
	store, err := fenceurl.Open(ctx, c.cfg.Fence)
	if err != nil {
		return err
	}
	t, err := account.Take(ctx, c.broker, store, c.ledger, c.lines)
	c.res.Tally = t
	return errors.Join(err, store.Close())
}

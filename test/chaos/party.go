package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/internal/fenceurl"
	"github.com/oncefence/oncefence/requeue"
	"github.com/oncefence/oncefence/test/sweep/account"
	"github.com/oncefence/oncefence/test/sweep/ledger"
	"github.com/oncefence/oncefence/test/sweep/member"
	"github.com/oncefence/oncefence/test/sweep/takeover"
)

const (
	// Lease of the members.
	Lease = time.Second
	// Settled of the probed sink. It does not cover a pause: the sink compares
	// tokens, so a paused holder that wakes up is refused.
	Settled = 600 * time.Millisecond

	session    = 2500 * time.Millisecond
	partitions = 6
	perParty   = 2 // members that are always there
	feedEvery  = 400 * time.Millisecond
	feedLines  = 20
)

var schedule = requeue.Schedule{Delays: []time.Duration{200 * time.Millisecond, time.Second, 2 * time.Second}}

// party is a consumer group with one kind of effect, its topic and its ledger.
type party struct {
	name   string
	kind   string
	cfg    member.Settings
	broker *account.Broker
	ledger *ledger.Ledger
	watch  *takeover.Watch
	slots  []*slot
	source *account.Source
	undone *account.Source // of lines in transactions that are aborted
	tx     *kgo.Client

	mu      sync.Mutex
	lines   []account.Line
	unsure  int            // lines of transactions whose commit has no answer
	aborted []account.Line // must never be applied
	batches int
}

// openParty makes the topic and the ledger. Static members come back at once
// after a kill; those of the group protocol of KIP-848 are dynamic.
func openParty(ctx context.Context, brokers []string, fence, runID, kind string, nextGen bool, seed uint64) (*party, error) {
	p := &party{name: kind, kind: kind, watch: takeover.New()}
	if nextGen {
		p.name += "-848"
	}
	p.source, p.undone = account.NewSource(seed, "o"), account.NewSource(seed+1, "aborted")
	group := "chaos-" + p.name + "-" + runID
	var err error
	if p.broker, err = account.Open(ctx, brokers, group, group, partitions, schedule); err != nil {
		return p, err
	}
	sink := member.Sink(kind)
	sink.Compares = kind == "probed"
	if p.ledger, err = ledger.Start(sink); err != nil {
		return p, err
	}
	if p.tx, err = kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID(group), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil))); err != nil {
		return p, err
	}
	p.cfg = member.Settings{
		Brokers: brokers, Topic: group, Group: group, Fence: fence, Kind: kind, Sink: p.ledger.URL, Lease: Lease, Delays: schedule.Delays,
		Settled: Settled, Session: session, NextGen: nextGen, Level: 8, // errors
	}
	return p, nil
}

// slot makes a place for a member; static ones have an instance id.
func (p *party) slot(program, name string, static bool) *slot {
	cfg := p.cfg
	if static && !cfg.NextGen {
		cfg.Instance = name
	}
	return &slot{name: name, program: program, cfg: cfg, tell: p.watch.Tell, died: p.watch.Died}
}

// feed sends lines until ctx ends: of three batches two as they are and one in a
// transaction; every other of these is aborted.
func (p *party) feed(ctx context.Context) error {
	tick := time.NewTicker(feedEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// A batch is sent to its end, or nobody would know what is in the topic.
		if err := p.batch(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
}

func (p *party) batch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	p.batches++
	if p.batches%3 != 0 {
		lines := p.source.Lines(feedLines)
		err := p.broker.Send(ctx, lines)
		if err == nil {
			p.sent(lines)
		}
		return err
	}
	abort := p.batches%6 == 0
	from := p.source
	if abort {
		from = p.undone
	}
	lines := from.Lines(feedLines)
	if err := p.tx.BeginTransaction(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	if err := p.broker.SendBy(ctx, p.tx, lines); err != nil && !abort {
		p.unsure += len(lines) // no duplicate of these may be counted on
		abort = true
	}
	if abort {
		if err := p.abort(ctx); err != nil {
			return err
		}
		p.mu.Lock()
		p.aborted = append(p.aborted, lines...)
		p.mu.Unlock()
		return nil
	}
	if err := p.tx.EndTransaction(ctx, kgo.TryCommit); err != nil {
		p.mu.Lock()
		p.unsure += len(lines)
		p.mu.Unlock()
		return p.abort(ctx)
	}
	p.sent(lines)
	return nil
}

// abort ends the transaction, as often as it takes while brokers come back.
func (p *party) abort(ctx context.Context) error {
	for {
		err := p.tx.EndTransaction(ctx, kgo.TryAbort)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("abort: %w", err)
		}
	}
}

func (p *party) sent(lines []account.Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, lines...)
}

// account works out what became of the lines; members must have stopped.
func (p *party) account(ctx context.Context) (account.Tally, error) {
	store, err := fenceurl.Open(ctx, p.cfg.Fence)
	if err != nil {
		return account.Tally{}, err
	}
	t, err := account.Take(ctx, p.broker, store, p.ledger, p.lines)
	for _, l := range p.aborted {
		if p.ledger.Booked(l.Order) > 0 { // they have order ids of their own
			t.Wrong++
			t.Faults = append(t.Faults, fmt.Sprintf("order %s of an aborted transaction was booked", l.Order))
		}
	}
	return t, errors.Join(err, store.Close())
}

func (p *party) close(ctx context.Context) error {
	var errs []error
	if p.tx != nil {
		p.tx.Close()
	}
	if p.broker != nil {
		errs = append(errs, p.broker.Delete(ctx))
		p.broker.Close()
	}
	if p.ledger != nil {
		errs = append(errs, p.ledger.Close())
	}
	return errors.Join(errs...)
}

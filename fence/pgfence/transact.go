package pgfence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/internal/fault"
)

var _ driver.Transactor = (*Store)(nil)

// How long a commit may take, how long its outcome is looked for when its answer
// did not come, and how much longer than the effect's own time a transaction may
// be silent before the server ends it.
const (
	commitTime = 10 * time.Second
	lookTime   = 20 * time.Second
	spareTime  = 5 * time.Second
)

// Handle implements driver.Transactor: a pgx.Tx, or a *sql.Tx over NewSQLStore.
func (s *Store) Handle() any { return s.links.sample() }

// Limits implements driver.Transactor.
func (s *Store) Limits() (claims, transactions int) { return tokenBlock, cap(s.transactions) }

// Transact implements driver.Transactor. It runs in READ COMMITTED, on one
// connection, and needs a round trip before work and one after it (over a *sql.DB
// two each). The server ends a transaction whose client falls silent for longer
// than ctx lasts.
func (s *Store) Transact(ctx context.Context, namespace string, claims []driver.Claim, work func(tx driver.Tx, claimed []driver.Claimed) ([]driver.Transition, error)) []driver.Transacted {
	out := make([]driver.Transacted, len(claims))
	if len(claims) == 0 {
		return out
	}
	err := s.check(ctx, namespace)
	if err == nil && len(claims) > tokenBlock {
		err = fmt.Errorf("%d claims in one transaction: at most %d", len(claims), tokenBlock)
	}
	if err == nil {
		err = s.turn(ctx)
	}
	if err != nil {
		return transactsFailed(out, err)
	}
	defer s.turnOver()
	w := &shared{transaction: s.begin(namespace, nil), claims: claims, out: out}
	w.order = sorted(len(claims), func(i int) *driver.Digest { return &claims[i].Key })
	w.keys = keysOf(claims, w.order)
	unknown, err := w.run(ctx, work)
	if unknown {
		err = w.lookUp(ctx, err)
	}
	w.answer(err)
	return out
}

// turn waits until one more transaction may run an effect.
func (s *Store) turn(ctx context.Context) error {
	if s.transactions == nil {
		return nil
	}
	select {
	case s.transactions <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("PostgreSQL: nothing was written: no connection was free for the effect's transaction (raise the pool's MaxConns or lower consumer.Options.Concurrency): %w", ctx.Err())
	}
}

func (s *Store) turnOver() {
	if s.transactions != nil {
		<-s.transactions
	}
}

func transactsFailed(out []driver.Transacted, err error) []driver.Transacted {
	for i := range out {
		out[i] = driver.Transacted{Claimed: driver.Claimed{Err: err}}
	}
	return out
}

// shared is a transaction that effects write in.
type shared struct {
	*transaction
	claims []driver.Claim
	out    []driver.Transacted
	order  []int
	next   []*driver.Record // what the claims write, by claim
	conn   held
	fresh  bool // the first savepoint was not asked for yet
	ended  bool // the effect ended the transaction
}

// run is everything up to the commit's answer. unknown says that it did not come.
func (w *shared) run(ctx context.Context, work func(driver.Tx, []driver.Claimed) ([]driver.Transition, error)) (unknown bool, err error) {
	w.conn, err = w.s.links.hold(ctx)
	if err != nil {
		return false, describe(ctx, nothingWritten, err)
	}
	defer func() { w.conn.free(context.WithoutCancel(ctx)) }() // also when work does not return
	if err := w.open(ctx); err != nil {
		return false, describe(ctx, nothingWritten, err)
	}
	if !w.granted() {
		return false, nil
	}
	claimed := make([]driver.Claimed, len(w.out))
	for i := range w.out {
		claimed[i] = w.out[i].Claimed
	}
	transitions, err := work(w, claimed)
	switch {
	case err != nil:
	case len(transitions) != len(w.claims):
		err = fmt.Errorf("%d transitions for %d claims", len(transitions), len(w.claims))
	default:
		err = w.Check()
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("PostgreSQL: rolled back: %w", err)
	}
	return w.close(ctx, transitions)
}

// open begins the transaction, takes the keys and decides the claims.
func (w *shared) open(ctx context.Context) error {
	silent := silentTime
	if deadline, ok := ctx.Deadline(); ok {
		silent = max(time.Until(deadline), 0) + spareTime
	}
	var got *string
	err := w.conn.begin(ctx, func(b *pgx.Batch) {
		w.s.limits(b, lockTime, silent)
		got = w.lock(b, w.claims, w.order)
		b.Queue(w.s.sql.plain)
		b.Queue("SAVEPOINT oncefence")
	})
	if err != nil {
		return err
	}
	w.fresh = true
	w.next = make([]*driver.Record, len(w.claims))
	for n, i := range w.order {
		w.next[i], w.out[i].Claimed = w.s.decide(w.transaction, &w.claims[i], w.found[w.claims[i].Key], (*got)[n] == '1')
	}
	return nil
}

func (w *shared) granted() bool {
	for i := range w.out {
		if c := &w.out[i].Claimed; c.Err == nil && c.Answer.Granted() {
			return true
		}
	}
	return false
}

// close decides the transitions, writes and commits.
func (w *shared) close(ctx context.Context, transitions []driver.Transition) (unknown bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	w.decideAll(transitions)
	fault.Point(fault.TransactBefore)
	err = w.conn.commit(ctx, func(b *pgx.Batch) {
		b.Queue("RELEASE SAVEPOINT oncefence") // it is still our transaction
		if w.writes() {
			w.s.limits(b, lockTime, silentTime)
			w.write(b)
		}
	})
	fault.Point(fault.TransactAfter)
	switch {
	case err == nil:
		return false, nil
	case endedCode(err):
		return false, describe(ctx, "PostgreSQL", fmt.Errorf("%w: %w", driver.ErrTxEnded, err))
	case pgconn.SafeToRetry(err):
		return false, describe(ctx, nothingWritten, err)
	case refused(err), errors.Is(err, pgx.ErrTxCommitRollback):
		return false, describe(ctx, "PostgreSQL", fmt.Errorf("%w: %w", driver.ErrCommitRefused, err))
	}
	return true, describe(ctx, notKnown, err)
}

// decideAll decides what becomes of each granted claim and puts it.
func (w *shared) decideAll(transitions []driver.Transition) {
	w.room(len(w.order))
	now := w.later()
	for _, i := range w.order {
		c := &w.out[i].Claimed
		if c.Err != nil || !c.Answer.Granted() || transitions[i].Op == driver.Release {
			continue
		}
		granted := c.Record
		next, applied := transitions[i].Decide(&granted, now)
		w.out[i].Outcome = applied.Outcome
		switch {
		case next == nil && w.next[i] == nil: // a claim that was sent again, and nothing more
			w.out[i].Record = &granted
			continue
		case next == nil:
			next = w.next[i]
		}
		w.out[i].Record = next
		key := &w.claims[i].Key
		w.put(key, w.found[*key].record != nil, next)
	}
}

// answer takes a failure back to the items. Those that were answered without
// being granted stay so: nothing was to be written for them.
func (w *shared) answer(err error) {
	if err == nil {
		return
	}
	for i := range w.out {
		c := &w.out[i].Claimed
		if c.Err == nil && c.Answer != driver.NoAnswer && !c.Answer.Granted() {
			continue
		}
		if c.Err == nil {
			w.out[i] = driver.Transacted{Claimed: driver.Claimed{Err: err}}
		}
	}
}

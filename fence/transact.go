package fence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// Transactor returns the store as one whose transactions effects can share, or
// false if it has none.
func (f *Fence) Transactor() (store driver.Transactor, ok bool) {
	store, ok = f.store.(driver.Transactor)
	return store, ok
}

// Work is what runs in a transaction of Transact: it runs effects on tx and
// answers one transition for each claim. See driver.Transactor.
type Work func(tx driver.Tx, claimed []Claimed) ([]driver.Transition, error)

// Transacted is the answer to a Request of Transact.
type Transacted struct {
	// Claimed is what the request met. Its Hold is set if the key is still held
	// after the commit: it was granted, and neither sealed nor released. It is
	// then renewed, as after Claim.
	Claimed
	// Outcome is what became of a claim that was granted.
	Outcome driver.Outcome
}

// Transact claims a batch of keys, no key twice, and calls work, in one
// transaction of the store's database, see driver.Transactor. The store must be
// one, and the batch not larger than it takes.
//
// claimed has one answer for each request. The holds of those that were granted
// make the transitions that work answers with: Hold.Seal, Retry, GiveUp and
// Release, or the zero Transition to keep the claim as it is. They are not renewed
// meanwhile, and need not be: nobody else is granted a key whose transaction is
// open. The lease of a claim that stays begins when work returns; a Lease in its
// transition is that lease.
//
// An answer with an Err failed, or nobody knows: send the same request again, or
// give it up with Abandon. Where the transaction failed no request was granted,
// and what was written through it is gone.
func (s *Space) Transact(ctx context.Context, requests []*Request, work Work) []Transacted {
	out := make([]Transacted, len(requests))
	store, ok := s.fence.Transactor()
	if !ok {
		err := fmt.Errorf("the fence store %T shares no transactions with effects: use one that does, such as pgfence", s.fence.store)
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	b := &transacting{space: s, work: work, claimed: make([]Claimed, len(requests))}
	b.send, b.places = s.admit(requests, b.claimed)
	if len(b.send) > 0 {
		b.sent = s.now()
		b.claims = s.claims(b.send, b.sent)
		answers := store.Transact(ctx, s.text, b.claims, b.run)
		b.read(answers, out)
	}
	for i := range b.claimed {
		if b.claimed[i].Err != nil && out[i].Answer == driver.NoAnswer && out[i].Err == nil {
			out[i].Err = b.claimed[i].Err // was not sent
		}
	}
	return out
}

// transacting is one batch of Transact on its way.
type transacting struct {
	space    *Space
	work     Work
	send     []*Request
	places   []int // of send among the requests; nil: all of them
	claims   []driver.Claim
	claimed  []Claimed // by request
	sent     time.Time
	returned time.Time // when work did
	observed bool
}

func (b *transacting) place(i int) int {
	if b.places != nil {
		return b.places[i]
	}
	return i
}

// run is the store's work: it hands the claims on with holds, and completes the
// transitions.
func (b *transacting) run(tx driver.Tx, answers []driver.Claimed) ([]driver.Transition, error) {
	s := b.space
	now := int64(0)
	for i := range answers {
		a := &answers[i]
		now = earlier(now, a.Now)
		c := &b.claimed[b.place(i)]
		*c = Claimed{Answer: a.Answer, Record: a.Record, Left: a.Left, Err: a.Err}
		if a.Err == nil && a.Answer.Granted() {
			c.Hold = newHold(s, b.send[i].Key, &a.Record, b.claims[i].Lease, b.send[i].first)
		}
	}
	s.observe(now, b.sent, s.now())
	b.observed = true
	transitions, err := b.work(tx, b.claimed)
	if err != nil {
		return nil, err
	}
	if len(transitions) != len(b.claimed) {
		return nil, fmt.Errorf("%d transitions for %d claims", len(transitions), len(b.claimed))
	}
	out := make([]driver.Transition, len(answers))
	for i := range out {
		out[i] = transitions[b.place(i)]
		hold := b.claimed[b.place(i)].Hold
		if hold == nil {
			continue
		}
		if out[i].Op == driver.NoOp {
			out[i] = hold.renewal()
		}
		if out[i].Op != driver.Release && out[i].Lease == 0 {
			out[i].Lease = hold.lease
		}
	}
	b.returned = s.now()
	return out, nil
}

// read takes the store's answers to the requests.
func (b *transacting) read(answers []driver.Transacted, out []Transacted) {
	s := b.space
	failed, now := 0, int64(0)
	var holds []*Hold
	for i := range answers {
		a, r := &answers[i], b.send[i]
		to := &out[b.place(i)]
		to.Claimed = Claimed{Answer: a.Claimed.Answer, Record: a.Claimed.Record, Left: a.Claimed.Left, Err: a.Claimed.Err}
		to.Outcome = a.Outcome
		now = earlier(now, a.Claimed.Now)
		if err := a.Claimed.Err; err != nil {
			failed++
			to.Err = fmt.Errorf("transact %s: %w", r.Key.Text(), err)
			if errors.Is(err, driver.ErrTooLate) || errors.Is(err, driver.ErrReleased) {
				r.forget()
			}
			continue
		}
		if !a.Claimed.Answer.Granted() {
			to.Left = min(a.Claimed.Left, b.claims[i].Lease)
		} else if a.Record != nil && a.Record.State == driver.Pending {
			hold := newHold(s, r.Key, a.Record, b.claims[i].Lease, b.returned)
			to.Hold, to.Record = hold, *a.Record
			holds = append(holds, hold)
		}
		r.forget()
	}
	read := s.now()
	if !b.observed {
		s.observe(now, b.sent, read)
	}
	s.fence.opts.Observer.StoreCall("transact", len(b.claims), failed, read.Sub(b.sent))
	s.add(holds)
}

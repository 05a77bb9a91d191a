package fencetest

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"sync"

	"github.com/oncefence/oncefence/fence/driver"
)

// together runs f(0) to f(n-1) at the same time and wants no error.
func together(n int, f func(i int) error, s *scene) {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	for i, err := range errs {
		s.want(err == nil, "caller %d of %d failed: %w", i, n, err)
	}
}

// lifeRules: several callers, ended contexts, closing.
var lifeRules = []Rule{
	{
		Name: "together/one-wins", Says: "of 50 claims of one key at the same time exactly one is granted, the others are held by it; so too when a lease ended",
		check: func(s *scene) {
			key := s.key()
			for _, want := range []driver.Answer{driver.New, driver.InDoubt} {
				out := make([]driver.Claimed, 50)
				claims := make([]driver.Claim, len(out))
				for i := range claims {
					claims[i] = s.ask(key)
				}
				together(len(out), func(i int) error {
					out[i] = s.store.Claim(s.ctx, s.space, claims[i:i+1])[0]
					return out[i].Err
				}, s)
				won := 0
				for _, c := range out {
					if c.Answer == want {
						won++
						continue
					}
					s.want(c.Answer == driver.Held, "a claim was answered %v", c.Answer)
				}
				s.want(won == 1, "%d claims were answered %v", won, want)
				r := s.get(key)
				renew := transition(driver.Renew, key, r.Nonce, &r)
				renew.Lease = s.h.Lease
				s.does(driver.OK, renew)
				s.pass()
			}
		},
	},
	{
		Name: "together/batches", Says: "batches over the same keys in different orders at the same time neither block each other for ever nor grant a key twice",
		check: func(s *scene) {
			const callers = 8
			keys, answers := s.keys(40), [callers][]driver.Claimed{}
			together(callers, func(i int) error {
				order := slices.Clone(keys)
				mathrand.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
				claims := make([]driver.Claim, len(order))
				for k := range order {
					claims[k] = driver.Claim{Key: order[k], Nonce: nonce(), Kind: driver.KindIdempotent, Attempt: 1, Lease: long, TakeoverUntil: 1 << 52}
				}
				answers[i] = s.store.Claim(s.ctx, s.space, claims)
				for k, c := range answers[i] {
					if c.Err != nil {
						return c.Err
					}
					if c.Answer.Granted() != (c.Record.Nonce == claims[k].Nonce) {
						return errors.New("an answer belongs to another claim")
					}
				}
				return nil
			}, s)
			granted := 0
			for _, out := range answers {
				for _, c := range out {
					if c.Answer.Granted() {
						granted++
					}
				}
			}
			s.want(granted == len(keys), "%d grants of %d keys", granted, len(keys))
		},
	},
	{
		Name: "together/two-handles", Says: "two handles on the same data see one state: one of them is granted, the other is held; what one writes the other reads, records and marker", needs: needSecond,
		check: func(s *scene) {
			second, err := s.h.Second(s.ctx, s.store)
			s.want(err == nil, "the harness could not open a second handle: %w", err)
			defer func() { _ = second.Close() }()
			first := s.store
			h := s.hold(driver.New, s.key())
			s.store = second
			s.answers(driver.Held, h.key())
			s.equal("the record read by the second handle", h.get(), h.rec)
			h.does(driver.Seal)
			other := s.hold(driver.New, s.key())
			_, err = second.Marker(s.ctx, s.space, driver.Marker{Epoch: [16]byte{5}})
			s.want(err == nil, "marker failed: %w", err)
			s.store = first
			s.answers(driver.Duplicate, h.key())
			s.answers(driver.Held, other.key())
			got, err := first.Marker(s.ctx, s.space, driver.Marker{Epoch: [16]byte{6}})
			s.want(err == nil && got.Epoch == [16]byte{5}, "the marker's epoch is %x, error %v", got.Epoch, err)
		},
	},
	{
		Name: "fail/context", Says: "with a context that has ended every item fails with its error and nothing is written; the other methods fail with it too",
		check: func(s *scene) {
			ctx, cancel := context.WithCancel(s.ctx)
			cancel()
			h := s.hold(driver.New, s.key())
			open := s.key()
			for i, c := range s.store.Claim(ctx, s.space, []driver.Claim{s.ask(open), s.ask(h.key())}) {
				s.want(errors.Is(c.Err, context.Canceled), "claim %d: answered %v, error %v", i, c.Answer, c.Err)
			}
			for i, a := range s.store.Apply(ctx, s.space, []driver.Transition{h.says(driver.Seal), s.absent().says(driver.Seal)}) {
				s.want(errors.Is(a.Err, context.Canceled), "transition %d: answered %v, error %v", i, a.Outcome, a.Err)
			}
			s.othersFail(ctx, s.store, context.Canceled)
			s.want(s.get(open).State == driver.Absent, "the claim was written")
			s.unchanged(h.key(), h.rec, "a seal whose context had ended")
		},
	},
	{
		Name: "fail/closed", Says: "after close every method fails with ErrClosed, each item too; closing again is no error",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			other, err := s.h.Open(s.ctx)
			s.want(err == nil, "the harness could not open another store: %w", err)
			s.want(other.Close() == nil, "close failed")
			for _, c := range other.Claim(s.ctx, s.space, []driver.Claim{s.ask(s.key())}) {
				s.want(errors.Is(c.Err, driver.ErrClosed), "claim: answered %v, error %v", c.Answer, c.Err)
			}
			for _, a := range other.Apply(s.ctx, s.space, []driver.Transition{h.says(driver.Seal)}) {
				s.want(errors.Is(a.Err, driver.ErrClosed), "apply: answered %v, error %v", a.Outcome, a.Err)
			}
			s.othersFail(s.ctx, other, driver.ErrClosed)
			_, err = other.Grade(s.ctx)
			s.want(errors.Is(err, driver.ErrClosed), "grade: error %v", err)
			s.want(other.Close() == nil, "closing again failed")
			s.answers(driver.Held, h.key())
		},
	},
}

// othersFail wants get, scan, purge and marker to fail with this error.
func (s *scene) othersFail(ctx context.Context, store driver.Store, want error) {
	_, err := store.Get(ctx, s.space, []driver.Digest{s.key()})
	s.want(errors.Is(err, want), "get: error %v, want %v", err, want)
	err = store.Scan(ctx, s.space, driver.Filter{}, func(driver.Digest, driver.Record) bool { return true })
	s.want(errors.Is(err, want), "scan: error %v, want %v", err, want)
	_, err = store.Purge(ctx, s.space, 1)
	s.want(errors.Is(err, want), "purge: error %v, want %v", err, want)
	_, err = store.Marker(ctx, s.space, driver.Marker{})
	s.want(errors.Is(err, want), "marker: error %v, want %v", err, want)
}

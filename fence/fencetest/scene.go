package fencetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// long is a lease or retention that does not end during a run.
const long = 10 * time.Hour

// scene is a store in the middle of a rule. Its methods stop the rule by a
// panic with seen when the store does something that no rule allows.
type scene struct {
	ctx   context.Context
	h     Harness
	store driver.Store
	space string
	made  int
}

// seen is what a rule saw and did not want.
type seen struct{ err error }

func newScene(ctx context.Context, h Harness, store driver.Store) *scene {
	var id [6]byte
	_, _ = rand.Read(id[:])
	return &scene{ctx: ctx, h: h, store: store, space: "fencetest:" + hex.EncodeToString(id[:])}
}

func (s *scene) failf(format string, args ...any) {
	panic(seen{fmt.Errorf(format, args...)})
}

func (s *scene) want(ok bool, format string, args ...any) {
	if !ok {
		s.failf(format, args...)
	}
}

// key makes the digest of a key that was not used before.
func (s *scene) key() driver.Digest {
	s.made++
	return sha256.Sum256(fmt.Appendf(nil, "%s:%d", s.space, s.made))
}

func (s *scene) keys(n int) []driver.Digest {
	out := make([]driver.Digest, n)
	for i := range out {
		out[i] = s.key()
	}
	return out
}

// pass lets a short lease or retention end.
func (s *scene) pass() { s.passFor(s.h.Lease) }

func (s *scene) passFor(d time.Duration) {
	if err := s.h.Pass(s.ctx, d+time.Millisecond); err != nil {
		s.failf("the harness could not let %v pass: %w", d, err)
	}
}

// now asks the store for its clock without writing anything.
func (s *scene) now() int64 {
	return s.applyAll([]driver.Transition{{Op: driver.Renew, Key: s.key(), Token: 1, Lease: long}})[0].Now
}

func (s *scene) claimAll(claims []driver.Claim) []driver.Claimed {
	out := s.store.Claim(s.ctx, s.space, claims)
	s.want(len(out) == len(claims), "%d claims got %d answers", len(claims), len(out))
	return out
}

func (s *scene) applyAll(transitions []driver.Transition) []driver.Applied {
	out := s.store.Apply(s.ctx, s.space, transitions)
	s.want(len(out) == len(transitions), "%d transitions got %d answers", len(transitions), len(out))
	return out
}

func (s *scene) getAll(keys []driver.Digest) []driver.Record {
	out, err := s.store.Get(s.ctx, s.space, keys)
	s.want(err == nil, "get failed: %w", err)
	s.want(len(out) == len(keys), "get of %d keys gave %d records", len(keys), len(out))
	return out
}

func (s *scene) get(key driver.Digest) driver.Record { return s.getAll([]driver.Digest{key})[0] }

// unchanged reads key again and wants it to be before.
func (s *scene) unchanged(key driver.Digest, before driver.Record, after string) {
	if d := diff(s.get(key), before); d != "" {
		s.failf("the record changed after %s: %s", after, d)
	}
}

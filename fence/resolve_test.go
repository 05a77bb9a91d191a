package fence_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/memfence"
)

// parked opens a namespace in which a key died in doubt.
func parked(t *testing.T) (*fence.Space, fence.Key) {
	t.Helper()
	f, err := fence.New(memfence.NewStore(nil), &fence.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ns, err := fence.NewNamespace(fence.Nil, "billing")
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Open(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	key := fence.RecordKey(fence.ScopeID, "orders", 0, fence.Nil, fence.Text("a"))
	got := s.Claim(t.Context(), []*fence.Request{{Key: key, Kind: driver.KindAtMostOnce, Attempt: 1, Lease: time.Second}})[0]
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	v := fence.Verdict{InDoubt: true, Reason: "in_doubt"}
	for _, transition := range []driver.Transition{got.Hold.GiveUp(v), got.Hold.Bury(v, 1)} {
		if a := s.Apply(t.Context(), []driver.Transition{transition})[0]; a.Err != nil || a.Outcome != driver.OK {
			t.Fatalf("%s: %+v", transition.Op, a)
		}
	}
	got.Hold.Drop()
	return s, key
}

func state(t *testing.T, s *fence.Space, key fence.Key) driver.Record {
	t.Helper()
	records, err := s.Get(t.Context(), []driver.Digest{key.Digest()})
	if err != nil {
		t.Fatal(err)
	}
	return records[0]
}

func TestResolveApplied(t *testing.T) {
	s, key := parked(t)
	r := fence.Resolution{Applied: true, EffectID: "ch_1", Receipt: []byte("receipt"), Who: "ann", Why: "found in the ledger"}
	for range 2 { // the same again is fine
		if err := s.Resolve(t.Context(), key, r); err != nil {
			t.Fatal(err)
		}
	}
	if got := state(t, s, key); got.State != driver.Done || got.EffectID != "ch_1" || string(got.Receipt) != "receipt" {
		t.Errorf("record: %+v", got)
	}
	r.Applied = false
	if err := s.Resolve(t.Context(), key, r); !errors.Is(err, fence.ErrNotParked) {
		t.Errorf("resolved the other way: %v", err)
	}
}

func TestResolveNotAppliedOpensToAReplay(t *testing.T) {
	s, key := parked(t)
	again := func() driver.Answer {
		got := s.Claim(t.Context(), []*fence.Request{{Key: key, Kind: driver.KindAtMostOnce, Attempt: 2, Lease: time.Second}})[0]
		if got.Hold != nil {
			got.Hold.Drop()
		}
		return got.Answer
	}
	if a := again(); a != driver.IsDead {
		t.Fatalf("a replay before the doubt is cleared: %s", a)
	}
	if err := s.Resolve(t.Context(), key, fence.Resolution{Who: "ann", Why: "not in the ledger"}); err != nil {
		t.Fatal(err)
	}
	if got := state(t, s, key); got.InDoubt || !strings.Contains(got.Reason, "ann") || !strings.Contains(got.Reason, "in_doubt") {
		t.Errorf("record: %+v", got)
	}
	if a := again(); a != driver.New {
		t.Errorf("a replay after it: %s", a)
	}
}

func TestResolveRefuses(t *testing.T) {
	s, key := parked(t)
	if err := s.Resolve(t.Context(), key, fence.Resolution{Applied: true}); err == nil || !strings.Contains(err.Error(), "who and why") {
		t.Errorf("without who and why: %v", err)
	}
	other := fence.RecordKey(fence.ScopeID, "orders", 0, fence.Nil, fence.Text("b"))
	if err := s.Resolve(t.Context(), other, fence.Resolution{Applied: true, Who: "ann", Why: "x"}); !errors.Is(err, fence.ErrNotParked) {
		t.Errorf("a key that is not there: %v", err)
	}
}

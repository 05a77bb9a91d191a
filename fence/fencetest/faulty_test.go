package fencetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

func quiet(change func(o *FaultyOptions)) FaultyOptions {
	o := FaultyOptions{LoseRequest: never, LoseReply: never, Delay: never, Double: never}
	change(&o)
	return o
}

func claimOf(n byte) []driver.Claim {
	return []driver.Claim{{Key: driver.Digest{n}, Nonce: driver.Nonce{n}, Kind: driver.KindProbed, Attempt: 1, Lease: time.Hour}}
}

func TestFaultsOneByOne(t *testing.T) {
	for name, c := range map[string]struct {
		opts            FaultyOptions
		lost            bool
		before, settled driver.State
	}{
		"none":         {quiet(func(*FaultyOptions) {}), false, driver.Pending, driver.Pending},
		"lost request": {quiet(func(o *FaultyOptions) { o.LoseRequest = 1 }), true, driver.Absent, driver.Absent},
		"lost reply":   {quiet(func(o *FaultyOptions) { o.LoseReply = 1 }), true, driver.Pending, driver.Pending},
		"delayed":      {quiet(func(o *FaultyOptions) { o.Delay = 1 }), true, driver.Absent, driver.Pending},
	} {
		store := bend{}.open()
		f := Faulty(store, c.opts)
		out := f.Claim(t.Context(), "ns", claimOf(1))
		if errors.Is(out[0].Err, ErrFault) != c.lost {
			t.Errorf("%s: %v, %v", name, out[0].Answer, out[0].Err)
		}
		for i, want := range []driver.State{c.before, c.settled} {
			got, err := store.Get(t.Context(), "ns", []driver.Digest{{1}})
			if err != nil || got[0].State != want {
				t.Errorf("%s: look %d: %v, %v, want %v", name, i, got[0].State, err, want)
			}
			f.Settle(t.Context())
		}
		if (f.Met() > 0) != (name != "none") {
			t.Errorf("%s: %d faults met", name, f.Met())
		}
	}
}

// A double of a release comes after the next claim: what the store saw is in
// its order.
func TestDoublesComeLate(t *testing.T) {
	var saw []driver.Op
	store := bend{apply: func(tr *driver.Transition, found *record, now int64) (*record, driver.Applied) {
		saw = append(saw, tr.Op)
		return tr.Decide(found, now)
	}}.open()
	f := Faulty(store, quiet(func(o *FaultyOptions) { o.Double, o.Late = 1, 5 }))
	held := f.Claim(t.Context(), "ns", claimOf(1))[0].Record
	steps := []driver.Step{{Name: "a", Receipt: []byte("x")}}
	for _, op := range []driver.Op{driver.Renew, driver.Keep, driver.GiveUp, driver.Seal} {
		tr := transition(op, driver.Digest{1}, held.Nonce, &held)
		tr.Steps = steps
		if out := f.Apply(t.Context(), "ns", []driver.Transition{tr}); out[0].Outcome != driver.OK {
			t.Fatalf("%v: %v, %v", op, out[0].Outcome, out[0].Err)
		}
	}
	stranger := transition(driver.GiveUp, driver.Digest{1}, driver.Nonce{9}, &record{Token: 99})
	f.Apply(t.Context(), "ns", []driver.Transition{stranger})
	f.Settle(t.Context())
	count := map[driver.Op]int{}
	for _, op := range saw {
		count[op]++
	}
	if !slices.Equal(saw[:2], []driver.Op{driver.Renew, driver.Renew}) {
		t.Errorf("a renewal's double does not come at once: %v", saw)
	}
	for op, want := range map[driver.Op]int{driver.Renew: 2, driver.Keep: 2, driver.GiveUp: 3, driver.Seal: 2} {
		if count[op] != want {
			t.Errorf("%v came %d times, want %d: %v", op, count[op], want, saw)
		}
	}
}

func TestSameSeedSameFaults(t *testing.T) {
	lost := func(seed uint64) (out []bool) {
		f := Faulty(bend{}.open(), FaultyOptions{Seed: seed})
		for n := range 100 {
			out = append(out, f.Claim(t.Context(), "ns", claimOf(byte(n)))[0].Err != nil)
		}
		return out
	}
	if !slices.Equal(lost(7), lost(7)) {
		t.Error("one seed gave two rows of faults")
	}
	if slices.Equal(lost(7), lost(8)) || !slices.Contains(lost(7), true) || !slices.Contains(lost(7), false) {
		t.Error("two seeds gave one row of faults, or all or nothing was lost")
	}
}

package fence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// ErrNotParked is matched by the error of a Resolve whose key is not dead in
// doubt.
var ErrNotParked = errors.New("the key is not parked in doubt")

// Resolution is what a person found out about a parked key.
type Resolution struct {
	// Applied says that the effect was applied: the key becomes done, and every
	// later delivery of it a duplicate. Otherwise its doubt is cleared, and a
	// replay of its dead letter runs.
	Applied bool
	// EffectID is what the sink calls the effect, with Applied; "" seals ours.
	EffectID string
	// Receipt is answered to duplicates, with Applied.
	Receipt []byte
	// Who and Why are kept with the record while it is dead. Both are needed.
	Who, Why string
}

// Resolve ends the doubt of a parked key. It compares the record that it has
// looked up, so two people cannot resolve one key in two ways: the second gets
// an error that matches ErrNotParked and says how the key stands. The same
// resolution again is fine. An error of the store leaves the outcome unknown:
// Resolve again.
func (s *Space) Resolve(ctx context.Context, key Key, r Resolution) error {
	if r.Who == "" || r.Why == "" {
		return fmt.Errorf("resolve %s: who and why are needed", key.Text())
	}
	records, err := s.Get(ctx, []driver.Digest{key.Digest()})
	if err != nil {
		return err
	}
	found := records[0]
	t := driver.Transition{
		Op: driver.Resolve, Key: key.Digest(), Token: found.Token, Applied: r.Applied, EffectID: r.EffectID, Receipt: r.Receipt,
		Reason:    fmt.Sprintf("resolved as not applied by %s at %s: %s; was: %s", r.Who, s.Now().Format(time.RFC3339), r.Why, found.Reason),
		Retention: s.fence.opts.DeadRetention,
	}
	if r.Applied {
		t.Retention = s.fence.opts.Retention
		if t.EffectID == "" {
			t.EffectID = EffectID(s.ns, key)
		}
	}
	answer := s.Apply(ctx, []driver.Transition{t})[0]
	switch {
	case answer.Err != nil:
		return answer.Err
	case answer.Outcome == driver.Refused:
		return fmt.Errorf("resolve %s: %w: it is %s, in doubt: %v", key.Text(), ErrNotParked, answer.Record.State, answer.Record.InDoubt)
	}
	s.fence.opts.Logger.Warn("oncefence: resolved", "idempotency_key", key.Text(), "applied", r.Applied, "who", r.Who, "why", r.Why)
	return nil
}

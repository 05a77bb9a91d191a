package redisfence

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/oncefence/oncefence/fence/driver"
)

// Apply implements driver.Store. A batch made only of renewals travels over a
// connection of its own.
func (s *Store) Apply(ctx context.Context, namespace string, transitions []driver.Transition) []driver.Applied {
	out := make([]driver.Applied, len(transitions))
	if err := s.check(namespace); err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	client, confirm := s.renewals, false
	digest := func(i int) *driver.Digest { return &transitions[i].Key }
	for i := range transitions {
		t := &transitions[i]
		if out[i].Err = checkTransition(t); out[i].Err != nil {
			return s.applySome(ctx, namespace, transitions, out)
		}
		if t.Op != driver.Renew {
			client = s.client
		}
		confirm = confirm || confirms(t.Op)
	}
	code := &coder{
		common: func(dst []byte, i int) []byte { return appendMove(dst, &transitions[i]) },
		body:   func(dst []byte, i int) []byte { return appendBody(dst, &transitions[i]) },
	}
	chunks := s.cut(len(transitions), digest)
	for _, c := range chunks {
		s.fill(c, namespace, digest, code)
	}
	for _, c := range s.call(client, applyScript, confirm).run(ctx, chunks) {
		readApplied(c, transitions, out)
	}
	return out
}

// applySome applies those of a batch that can be packed.
func (s *Store) applySome(ctx context.Context, namespace string, transitions []driver.Transition, out []driver.Applied) []driver.Applied {
	var good []driver.Transition
	var at []int
	for i := range transitions {
		if out[i].Err = checkTransition(&transitions[i]); out[i].Err == nil {
			good, at = append(good, transitions[i]), append(at, i)
		}
	}
	if len(good) == 0 {
		return out
	}
	for i, answer := range s.Apply(ctx, namespace, good) {
		out[at[i]] = answer
	}
	return out
}

// checkTransition refuses what has no packed form.
func checkTransition(t *driver.Transition) error {
	sealing := t.Op == driver.Seal || t.Op == driver.Resolve && t.Applied
	if sealing && !driver.ValidEffectID(t.EffectID) {
		return fmt.Errorf("%s %x: effect id %q must have 1 to %d bytes and no control characters", t.Op, t.Key, t.EffectID, driver.MaxEffectID)
	}
	if wireOp(t.Op) == 0 {
		return fmt.Errorf("%s %x: not a transition", t.Op, t.Key)
	}
	return nil
}

func wireOp(op driver.Op) byte {
	switch op {
	case driver.Renew:
		return 'R'
	case driver.Release:
		return 'B'
	case driver.Retry:
		return 'T'
	case driver.GiveUp:
		return 'G'
	case driver.Begin:
		return 'N'
	case driver.Keep:
		return 'K'
	case driver.HandOver:
		return 'H'
	case driver.Bury:
		return 'D'
	case driver.Seal:
		return 'S'
	case driver.Resolve:
		return 'V'
	case driver.NoOp:
	}
	return 0
}

// appendMove writes what the transitions of a batch mostly have in common, as
// lua/apply.lua reads it.
func appendMove(dst []byte, t *driver.Transition) []byte {
	span := t.Retention
	if t.Op == driver.Renew || t.Op == driver.Retry || t.Op == driver.GiveUp || t.Op == driver.Begin {
		span = t.Lease
	}
	dst = binary.BigEndian.AppendUint64(append(dst, wireOp(t.Op)), t.Token)
	return binary.BigEndian.AppendUint64(dst, uint64(span.Microseconds()))
}

// appendBody writes the rest.
func appendBody(dst []byte, t *driver.Transition) []byte {
	be := binary.BigEndian
	switch t.Op {
	case driver.Release:
		dst = append(dst, t.Nonce[:]...)
	case driver.Retry, driver.GiveUp:
		dst = append(be.AppendUint32(dst, t.Attempt), flag(t.InDoubt))
		dst = be.AppendUint32(be.AppendUint32(dst, t.NextAttempt), t.NextStep)
		dst = be.AppendUint64(dst, uint64(t.Due.Microseconds()))
		dst = appendText(dst, t.Reason)
	case driver.Begin:
		dst = be.AppendUint32(be.AppendUint32(be.AppendUint32(dst, t.Attempt), t.NextAttempt), t.NextStep)
	case driver.Keep:
		dst = be.AppendUint32(dst, uint32(len(t.Steps)))
		dst = append(dst, driver.AppendTail(nil, driver.Origin{}, "", t.Steps)[emptyTail:]...)
	case driver.HandOver, driver.Bury:
		r := driver.Record{
			State: driver.Requeued, Kind: t.Kind, InDoubt: t.InDoubt, Token: t.Token, Attempt: t.Attempt, Step: t.Step,
			Takeovers: t.Takeovers, Fingerprint: t.Fingerprint, AttemptEnd: t.AttemptEnd, FirstSeen: t.FirstSeen,
			Origin: t.Origin, Reason: t.Reason, Steps: t.Steps,
		}
		if t.Op == driver.Bury {
			r.State = driver.Dead
		}
		dst = driver.AppendRecord(be.AppendUint32(dst, t.Attempt), &r)
	case driver.Seal:
		dst = appendSeal(dst, t)
	case driver.Resolve:
		dst = append(dst, flag(t.Applied))
		if !t.Applied {
			return appendText(append(dst, 0, 0), t.Reason)
		}
		dst = be.AppendUint16(dst, uint16(len("done:")+len(t.EffectID)+1))
		dst = append(append(append(dst, "done:"...), t.EffectID...), 0)
		dst = append(dst, t.Receipt...)
	case driver.Renew, driver.NoOp:
	}
	return dst
}

// emptyTail is the length of a tail's part before the steps when it is empty.
const emptyTail = 6

// appendSeal writes the done record up to the seal time, which is the store's.
func appendSeal(dst []byte, t *driver.Transition) []byte {
	r := driver.Record{
		State: driver.Done, Kind: t.Kind, Token: t.Token, Attempt: t.Attempt, Fingerprint: t.Fingerprint, Origin: t.Origin,
		FirstSeen: t.FirstSeen, Expire: max(t.Retention, 0).Microseconds(), EffectID: t.EffectID, Receipt: t.Receipt,
	}
	dst = driver.AppendRecord(dst, &r) // sealed at 0: the end is the retention
	return dst[:len(dst)-8]
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// readApplied fills in the answers of one chunk.
func readApplied(c *chunk, transitions []driver.Transition, out []driver.Applied) {
	var notices []notice
	err := c.err
	if err == nil {
		notices, err = c.notices()
	}
	for i := range c.keys {
		answer := &out[c.item(i)]
		switch {
		case err != nil:
			answer.Err = err
		case notices != nil && notices[i].code != 0:
			answer.Now = c.now()
			notices[i].applied(&transitions[c.item(i)], answer)
		default:
			answer.Now, answer.Outcome = c.now(), driver.OK
		}
		if c.short != nil && answer.Err == nil && answer.Outcome != driver.Refused && confirms(transitions[c.item(i)].Op) {
			*answer = driver.Applied{Now: answer.Now, Err: c.short}
		}
	}
}

// applied works out the answer from the record that the transition met.
func (n notice) applied(t *driver.Transition, out *driver.Applied) {
	if n.code != 'w' && n.code != 'n' {
		out.Err = n.failure()
		return
	}
	found, err := parseFound(n.bytes)
	if err != nil {
		out.Err = err
		return
	}
	next, answer := t.Decide(found, out.Now)
	if (next != nil) != (n.code == 'w') {
		out.Err = fmt.Errorf("the script and this release disagree on %s %x: %w", t.Op, t.Key, errReply)
		return
	}
	*out = answer
}

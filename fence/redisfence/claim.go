package redisfence

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/oncefence/oncefence/fence/driver"
)

// Claim implements driver.Store.
func (s *Store) Claim(ctx context.Context, namespace string, claims []driver.Claim) []driver.Claimed {
	out := make([]driver.Claimed, len(claims))
	if err := s.check(namespace); err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	digest := func(i int) *driver.Digest { return &claims[i].Key }
	code := &coder{
		common: func(dst []byte, i int) []byte { return appendTerms(dst, &claims[i]) },
		body:   func(dst []byte, i int) []byte { return appendPending(dst, &claims[i]) },
	}
	chunks := s.cut(len(claims), digest)
	for _, c := range chunks {
		s.fill(c, namespace, digest, code)
	}
	for _, c := range s.call(s.client, claimScript, true).run(ctx, chunks) {
		readClaims(c, claims, out)
	}
	return out
}

// pendingOf is the record of a claim that finds nothing, but for what the
// store makes: token, lease end and first seen.
func pendingOf(c *driver.Claim) driver.Record {
	return driver.Record{
		State: driver.Pending, Kind: c.Kind, Attempt: c.Attempt, Step: c.Step,
		Fingerprint: c.Fingerprint, Nonce: c.Nonce, Origin: c.Origin,
	}
}

// appendTerms writes what the claims of a batch mostly have in common, as
// lua/claim.lua reads it.
func appendTerms(dst []byte, c *driver.Claim) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.NotAfter))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.TakeoverUntil))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Lease.Microseconds()))
	return append(dst, flag(c.InPlace))
}

// madeByStore is the front of a packed pending record, up to what the client
// knows: the word, a zero byte, the version, then token, lease end, first seen.
const madeByStore = len("pending") + 1 + 1 + 3*8

// appendPending writes the record of a claim behind what the store makes.
func appendPending(dst []byte, c *driver.Claim) []byte {
	at := len(dst)
	r := pendingOf(c)
	dst = driver.AppendRecord(dst, &r)
	return append(dst[:at], dst[at+madeByStore:]...)
}

// readClaims fills in the answers of one chunk.
func readClaims(c *chunk, claims []driver.Claim, out []driver.Claimed) {
	var notices []notice
	err := c.err
	if err == nil {
		notices, err = c.notices()
	}
	if err == nil {
		err = c.short // also of answers: what they rest on may be lost
	}
	if err != nil {
		for i := range c.keys {
			out[c.item(i)].Err = err
		}
		return
	}
	now := c.now()
	for i := range c.keys {
		claim, answer := &claims[c.item(i)], &out[c.item(i)]
		answer.Now = now
		if notices != nil && notices[i].code != 0 {
			notices[i].claimed(claim, answer)
			continue
		}
		answer.Answer, answer.Record = driver.New, pendingOf(claim)
		answer.Record.Token, answer.Record.FirstSeen = uint64(now), now
		answer.Record.LeaseEnd = now + claim.Lease.Microseconds()
	}
}

// claimed works out the answer from the record that the claim met.
func (n notice) claimed(c *driver.Claim, out *driver.Claimed) {
	token := uint64(0)
	switch {
	case n.code == 'g' && len(n.bytes) >= 8:
		token, n.bytes = binary.BigEndian.Uint64(n.bytes), n.bytes[8:]
	case n.code != 'n':
		out.Err = n.failure()
		return
	}
	found, err := parseFound(n.bytes)
	if err != nil {
		out.Err = err
		return
	}
	next, answer := c.Decide(found, out.Now, func(uint64) uint64 { return token })
	if (next != nil) != (n.code == 'g') {
		out.Err = fmt.Errorf("the script and this release disagree on claim %x: %w", c.Key, errReply)
		return
	}
	*out = answer
}

// parseFound reads the record that an item met; nil if there was none.
func parseFound(data []byte) (*driver.Record, error) {
	if len(data) == 0 {
		return nil, nil
	}
	found, err := driver.ParseRecord(data)
	if err != nil {
		return nil, err
	}
	return &found, nil
}

// unreadable is the error of a record that the script could not read.
func unreadable(data []byte) error {
	if _, err := driver.ParseRecord(data); err != nil {
		return err
	}
	return fmt.Errorf("%w: a number in it is too large", driver.ErrUnreadable)
}

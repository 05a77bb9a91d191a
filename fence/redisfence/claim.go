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
	for _, c := range s.run(ctx, s.client, claimScript, chunks) {
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
	r, err := reader{}, c.err
	if err == nil {
		r, err = newReader(c)
	}
	for i := range c.keys {
		at := c.item(i)
		if err != nil {
			out[at].Err = err
			continue
		}
		r.claim(r.codes[i], &claims[at], &out[at])
	}
}

func (r *reader) claim(code byte, c *driver.Claim, out *driver.Claimed) {
	out.Now = r.now
	if code == 'w' {
		out.Answer, out.Record = driver.New, pendingOf(c)
		out.Record.Token, out.Record.FirstSeen = uint64(r.now), r.now
		out.Record.LeaseEnd = r.now + c.Lease.Microseconds()
		return
	}
	extra, err := r.extra()
	if err != nil {
		out.Err = err
		return
	}
	token := uint64(0)
	switch code {
	case 'g':
		if len(extra) < 8 {
			out.Err = errReply
			return
		}
		token, extra = binary.BigEndian.Uint64(extra), extra[8:]
	case 'n':
	case 'u':
		out.Err = unreadable(extra)
		return
	case 'e':
		out.Err = refused(extra)
		return
	default:
		out.Err = errReply
		return
	}
	found, err := parseFound(extra)
	if err != nil {
		out.Err = err
		return
	}
	next, answer := c.Decide(found, r.now, func(uint64) uint64 { return token })
	if (next != nil) != (code == 'g') {
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

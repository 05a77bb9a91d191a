package driver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The packed form of a record, the same in every store that keeps bytes.
//
// It begins with what a person wants to see, "pending", "requeued", "dead",
// "released" (a tombstone) or "done:<effect id>", then a zero byte and, all
// integers big endian:
//
//	 0 version 1      1 token 8
//	done:  9 kind 1   10 fingerprint scheme 1   11 fingerprint 16
//	      27 tail: uvarint attempt, uvarint retention in µs (0 none), varint first seen - token,
//	         varint origin timestamp - first seen/1000, source, topic (uvarint length, bytes),
//	         varint partition, varint offset, receipt; the last 8 bytes are the seal time
//	other: 9 lease end 8   17 first seen 8   25 flags 1 (1 in doubt, 2 prior lost)   26 kind 1   27 verdict 1
//	      28 fingerprint scheme 1   29 attempt 4   33 fingerprint 16   49 expire 8   57 nonce 16
//	      73 released nonce 16   89 released token 8   97 step 4   101 takeovers 4   105 next attempt 4
//	     109 next step 4   113 due 8   121 attempt end 8   129 tail length 4   133 tail, then the packed
//	     prior record to the end
//	       tail: source, topic, varint partition, varint offset, varint timestamp, reason, uvarint number of steps,
//	       each: name, kind 1, receipt
//
// Offsets count from the byte after the zero byte. What a store makes stands
// together, so that a script adds it in one piece: token, lease end and first
// seen at the front of a claim, the seal time at the end of a seal.
const (
	FormatVersion = 1
	doneLen       = 27
	longLen       = 133
	flagInDoubt   = 1
	flagPriorLost = 2
)

// MaxEffectID is the longest effect id that a record can hold, in bytes.
const MaxEffectID = 255

var errShort = errors.New("record is cut short")

// ValidEffectID reports whether id can stand in a record: 1 to MaxEffectID
// bytes, none of them below 0x20.
func ValidEffectID(id string) bool {
	if id == "" || len(id) > MaxEffectID {
		return false
	}
	for i := range len(id) {
		if id[i] < 0x20 {
			return false
		}
	}
	return true
}

// AppendRecord appends the packed form of r.
func AppendRecord(dst []byte, r *Record) []byte {
	dst = appendPrefix(dst, r)
	dst = binary.BigEndian.AppendUint64(append(dst, FormatVersion), r.Token)
	if r.State == Done {
		return appendDone(dst, r)
	}
	dst = appendLong(dst, r)
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = AppendTail(dst, r.Origin, r.Reason, r.Steps)
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	if r.Prior != nil {
		dst = AppendRecord(dst, r.Prior)
	}
	return dst
}

func appendPrefix(dst []byte, r *Record) []byte {
	switch r.State {
	case Absent:
		dst = append(dst, "released"...)
	case Pending, Requeued, Dead:
		dst = append(dst, stateNames[r.State]...)
	case Done:
		dst = append(dst, "done:"...)
		dst = append(dst, r.EffectID...)
	}
	return append(dst, 0)
}

func appendDone(dst []byte, r *Record) []byte {
	dst = append(dst, byte(r.Kind), r.Fingerprint.Scheme)
	dst = append(dst, r.Fingerprint.Sum[:]...)
	retention := int64(0)
	if r.Expire != 0 {
		retention = r.Expire - r.SealedAt
	}
	dst = binary.AppendUvarint(dst, uint64(r.Attempt))
	dst = binary.AppendUvarint(dst, uint64(retention))
	dst = binary.AppendVarint(dst, r.FirstSeen-int64(r.Token))
	dst = binary.AppendVarint(dst, r.Origin.Timestamp-r.FirstSeen/1000)
	dst = appendString(dst, r.Origin.Source)
	dst = appendString(dst, r.Origin.Topic)
	dst = binary.AppendVarint(dst, int64(r.Origin.Partition))
	dst = binary.AppendVarint(dst, r.Origin.Offset)
	dst = append(dst, r.Receipt...)
	return binary.BigEndian.AppendUint64(dst, uint64(r.SealedAt))
}

func appendLong(dst []byte, r *Record) []byte {
	be := binary.BigEndian
	dst = be.AppendUint64(dst, uint64(r.LeaseEnd))
	dst = be.AppendUint64(dst, uint64(r.FirstSeen))
	var flags byte
	if r.InDoubt {
		flags |= flagInDoubt
	}
	if r.PriorLost {
		flags |= flagPriorLost
	}
	dst = append(dst, flags, byte(r.Kind), byte(r.Verdict), r.Fingerprint.Scheme)
	dst = be.AppendUint32(dst, r.Attempt)
	dst = append(dst, r.Fingerprint.Sum[:]...)
	dst = be.AppendUint64(dst, uint64(r.Expire))
	dst = append(dst, r.Nonce[:]...)
	dst = append(dst, r.Released[:]...)
	dst = be.AppendUint64(dst, r.ReleasedToken)
	for _, n := range [...]uint32{r.Step, r.Takeovers, r.NextAttempt, r.NextStep} {
		dst = be.AppendUint32(dst, n)
	}
	dst = be.AppendUint64(dst, uint64(r.Due))
	return be.AppendUint64(dst, uint64(r.AttemptEnd))
}

// AppendTail appends the tail of a record that is not done.
func AppendTail(dst []byte, o Origin, reason string, steps []Step) []byte {
	dst = appendString(dst, o.Source)
	dst = appendString(dst, o.Topic)
	dst = binary.AppendVarint(dst, int64(o.Partition))
	dst = binary.AppendVarint(dst, o.Offset)
	dst = binary.AppendVarint(dst, o.Timestamp)
	dst = appendString(dst, reason)
	dst = binary.AppendUvarint(dst, uint64(len(steps)))
	for _, s := range steps {
		dst = appendString(dst, s.Name)
		dst = append(dst, byte(s.Kind))
		dst = appendString(dst, s.Receipt)
	}
	return dst
}

func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// ParseRecord reads the packed form. Its errors match ErrUnreadable. The
// result shares no memory with data.
func ParseRecord(data []byte) (Record, error) {
	r, err := parseRecord(data, true)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return r, nil
}

func parseRecord(data []byte, priorAllowed bool) (r Record, err error) {
	prefix, rest, ok := bytes.Cut(data, []byte{0})
	if !ok || len(rest) < doneLen {
		return r, errShort
	}
	if rest[0] != FormatVersion {
		return r, fmt.Errorf("format version %d, this program reads %d", rest[0], FormatVersion)
	}
	switch {
	case string(prefix) == "pending":
		r.State = Pending
	case string(prefix) == "requeued":
		r.State = Requeued
	case string(prefix) == "dead":
		r.State = Dead
	case string(prefix) == "released":
		r.State = Absent
	case bytes.HasPrefix(prefix, []byte("done:")):
		r.State, r.EffectID = Done, string(prefix[len("done:"):])
		if !ValidEffectID(r.EffectID) {
			return r, errors.New("effect id is empty, too long or has control characters")
		}
	default:
		return r, errors.New("unknown state")
	}
	r.Token = binary.BigEndian.Uint64(rest[1:])
	if r.State == Done {
		return r, parseDone(&r, rest)
	}
	return r, parseLong(&r, rest, priorAllowed)
}

func parseDone(r *Record, rest []byte) error {
	if len(rest) < doneLen+8 {
		return errShort
	}
	r.Kind, r.Fingerprint.Scheme = Kind(rest[9]), rest[10]
	copy(r.Fingerprint.Sum[:], rest[11:])
	r.SealedAt = int64(binary.BigEndian.Uint64(rest[len(rest)-8:]))
	p := parser{data: rest[doneLen : len(rest)-8]}
	attempt, retention := p.uvarint(), p.uvarint()
	r.FirstSeen = p.varint() + int64(r.Token)
	r.Origin.Timestamp = p.varint() + r.FirstSeen/1000
	r.Origin.Source, r.Origin.Topic = string(p.bytes()), string(p.bytes())
	r.Origin.Partition, r.Origin.Offset = p.int32(), p.varint()
	if p.err != nil {
		return p.err
	}
	if attempt > math.MaxUint32 {
		return errors.New("attempt out of range")
	}
	if retention > math.MaxInt64/2 || r.SealedAt < 0 || r.SealedAt > math.MaxInt64/2 {
		return errors.New("time out of range")
	}
	r.Attempt = uint32(attempt)
	if retention != 0 {
		r.Expire = r.SealedAt + int64(retention)
	}
	if len(p.data) > 0 {
		r.Receipt = bytes.Clone(p.data)
	}
	return nil
}

func parseLong(r *Record, rest []byte, priorAllowed bool) error {
	if len(rest) < longLen {
		return errShort
	}
	be := binary.BigEndian
	r.LeaseEnd, r.FirstSeen = int64(be.Uint64(rest[9:])), int64(be.Uint64(rest[17:]))
	if rest[25]&^(flagInDoubt|flagPriorLost) != 0 {
		return errors.New("unknown flags")
	}
	r.InDoubt, r.PriorLost = rest[25]&flagInDoubt != 0, rest[25]&flagPriorLost != 0
	r.Kind, r.Verdict, r.Fingerprint.Scheme = Kind(rest[26]), Verdict(rest[27]), rest[28]
	if r.Verdict > VerdictGiveUp {
		return errors.New("unknown verdict")
	}
	r.Attempt = be.Uint32(rest[29:])
	copy(r.Fingerprint.Sum[:], rest[33:])
	r.Expire = int64(be.Uint64(rest[49:]))
	copy(r.Nonce[:], rest[57:])
	copy(r.Released[:], rest[73:])
	r.ReleasedToken = be.Uint64(rest[89:])
	r.Step, r.Takeovers = be.Uint32(rest[97:]), be.Uint32(rest[101:])
	r.NextAttempt, r.NextStep = be.Uint32(rest[105:]), be.Uint32(rest[109:])
	r.Due, r.AttemptEnd = int64(be.Uint64(rest[113:])), int64(be.Uint64(rest[121:]))
	tailLen := int64(be.Uint32(rest[129:]))
	rest = rest[longLen:]
	if tailLen > int64(len(rest)) {
		return errShort
	}
	p := parser{data: rest[:tailLen]}
	r.Origin.Source, r.Origin.Topic = string(p.bytes()), string(p.bytes())
	r.Origin.Partition, r.Origin.Offset, r.Origin.Timestamp = p.int32(), p.varint(), p.varint()
	r.Reason = string(p.bytes())
	for n := p.uvarint(); n > 0 && p.err == nil; n-- {
		s := Step{Name: string(p.bytes()), Kind: Kind(p.byte())}
		if receipt := p.bytes(); len(receipt) > 0 {
			s.Receipt = bytes.Clone(receipt)
		}
		r.Steps = append(r.Steps, s)
	}
	if p.err != nil {
		return p.err
	}
	if len(p.data) != 0 {
		return errors.New("tail has bytes left over")
	}
	if rest = rest[tailLen:]; len(rest) > 0 {
		if !priorAllowed || r.State != Pending {
			return errors.New("a prior record where none may be")
		}
		prior, err := parseRecord(rest, false)
		if err != nil {
			return fmt.Errorf("prior record: %w", err)
		}
		r.Prior = &prior
	}
	return nil
}

type parser struct {
	data []byte
	err  error
}

func (p *parser) uvarint() uint64 {
	n, size := binary.Uvarint(p.data)
	return take(p, n, size)
}

func (p *parser) varint() int64 {
	n, size := binary.Varint(p.data)
	return take(p, n, size)
}

func take[T int64 | uint64](p *parser, n T, size int) T {
	if size <= 0 || p.err != nil {
		p.err = errShort
		return 0
	}
	p.data = p.data[size:]
	return n
}

func (p *parser) int32() int32 {
	n := p.varint()
	if n < math.MinInt32 || n > math.MaxInt32 {
		p.err = errors.New("partition out of range")
	}
	return int32(n)
}

func (p *parser) byte() byte {
	if len(p.data) < 1 || p.err != nil {
		p.err = errShort
		return 0
	}
	b := p.data[0]
	p.data = p.data[1:]
	return b
}

func (p *parser) bytes() []byte {
	n := p.uvarint()
	if n > uint64(len(p.data)) || p.err != nil {
		p.err = errShort
		return nil
	}
	b := p.data[:n]
	p.data = p.data[n:]
	return b
}

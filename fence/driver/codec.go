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
//	 0 version 1      1 flags 1 (1 in doubt, 2 prior lost)   2 kind 1   3 verdict 1   4 fingerprint scheme 1
//	 5 token 8       13 attempt 4                            17 fingerprint 16
//	done:  33 sealed at 8, then a tail: uvarint retention in µs (0 none), uvarint first seen,
//	       varint origin timestamp - first seen/1000, source, topic (uvarint length, bytes),
//	       varint partition, varint offset, receipt to the end
//	other: 33 expire 8   41 lease end 8   49 nonce 16   65 released nonce 16   81 released token 8
//	       89 step 4   93 takeovers 4   97 next attempt 4   101 next step 4   105 due 8
//	      113 attempt end 8   121 first seen 8   129 tail length 4   133 tail, then the packed prior record to the end
//	       tail: source, topic, varint partition, varint offset, varint timestamp, reason, uvarint number of steps,
//	       each: name, kind 1, receipt
//
// Offsets count from the byte after the zero byte.
const (
	FormatVersion = 1
	headLen       = 33
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
	dst = appendHead(dst, r)
	if r.State == Done {
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.SealedAt))
		retention := int64(0)
		if r.Expire != 0 {
			retention = r.Expire - r.SealedAt
		}
		return AppendDoneTail(dst, retention, r.FirstSeen, r.Origin, r.Receipt)
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

func appendHead(dst []byte, r *Record) []byte {
	var flags byte
	if r.InDoubt {
		flags |= flagInDoubt
	}
	if r.PriorLost {
		flags |= flagPriorLost
	}
	dst = append(dst, FormatVersion, flags, byte(r.Kind), byte(r.Verdict), r.Fingerprint.Scheme)
	dst = binary.BigEndian.AppendUint64(dst, r.Token)
	dst = binary.BigEndian.AppendUint32(dst, r.Attempt)
	return append(dst, r.Fingerprint.Sum[:]...)
}

func appendLong(dst []byte, r *Record) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.Expire))
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.LeaseEnd))
	dst = append(dst, r.Nonce[:]...)
	dst = append(dst, r.Released[:]...)
	dst = binary.BigEndian.AppendUint64(dst, r.ReleasedToken)
	for _, n := range [...]uint32{r.Step, r.Takeovers, r.NextAttempt, r.NextStep} {
		dst = binary.BigEndian.AppendUint32(dst, n)
	}
	for _, n := range [...]int64{r.Due, r.AttemptEnd, r.FirstSeen} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	return dst
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

// AppendDoneTail appends what follows the seal time in a done record.
func AppendDoneTail(dst []byte, retentionMicros, firstSeen int64, o Origin, receipt []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(retentionMicros))
	dst = binary.AppendUvarint(dst, uint64(firstSeen))
	dst = binary.AppendVarint(dst, o.Timestamp-firstSeen/1000)
	dst = appendString(dst, o.Source)
	dst = appendString(dst, o.Topic)
	dst = binary.AppendVarint(dst, int64(o.Partition))
	dst = binary.AppendVarint(dst, o.Offset)
	return append(dst, receipt...)
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
	if !ok || len(rest) < headLen {
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
	if rest[1]&^(flagInDoubt|flagPriorLost) != 0 {
		return r, errors.New("unknown flags")
	}
	r.InDoubt, r.PriorLost = rest[1]&flagInDoubt != 0, rest[1]&flagPriorLost != 0
	r.Kind, r.Verdict, r.Fingerprint.Scheme = Kind(rest[2]), Verdict(rest[3]), rest[4]
	if r.Verdict > VerdictGiveUp {
		return r, errors.New("unknown verdict")
	}
	r.Token = binary.BigEndian.Uint64(rest[5:])
	r.Attempt = binary.BigEndian.Uint32(rest[13:])
	copy(r.Fingerprint.Sum[:], rest[17:])
	if r.State == Done {
		return r, parseDone(&r, rest[headLen:])
	}
	return r, parseLong(&r, rest, priorAllowed)
}

func parseDone(r *Record, data []byte) error {
	if len(data) < 8 {
		return errShort
	}
	p := parser{data: data[8:]}
	r.SealedAt = int64(binary.BigEndian.Uint64(data))
	retention := p.uvarint()
	r.FirstSeen = int64(p.uvarint())
	r.Origin.Timestamp = p.varint() + r.FirstSeen/1000
	r.Origin.Source, r.Origin.Topic = string(p.bytes()), string(p.bytes())
	r.Origin.Partition, r.Origin.Offset = p.int32(), p.varint()
	if p.err != nil {
		return p.err
	}
	if retention > math.MaxInt64/2 || r.SealedAt < 0 || r.SealedAt > math.MaxInt64/2 {
		return errors.New("time out of range")
	}
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
	r.Expire = int64(binary.BigEndian.Uint64(rest[33:]))
	r.LeaseEnd = int64(binary.BigEndian.Uint64(rest[41:]))
	copy(r.Nonce[:], rest[49:])
	copy(r.Released[:], rest[65:])
	r.ReleasedToken = binary.BigEndian.Uint64(rest[81:])
	r.Step = binary.BigEndian.Uint32(rest[89:])
	r.Takeovers = binary.BigEndian.Uint32(rest[93:])
	r.NextAttempt = binary.BigEndian.Uint32(rest[97:])
	r.NextStep = binary.BigEndian.Uint32(rest[101:])
	r.Due = int64(binary.BigEndian.Uint64(rest[105:]))
	r.AttemptEnd = int64(binary.BigEndian.Uint64(rest[113:]))
	r.FirstSeen = int64(binary.BigEndian.Uint64(rest[121:]))
	tailLen := int64(binary.BigEndian.Uint32(rest[129:]))
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

package requeue

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// plainBytes stand for themselves in a part of a canonical text; every other
// byte is % and two upper-case hexadecimal digits, a nil part is nilPart. It is
// the rule of package fence, which is not imported here.
const (
	plainBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~/@+=,- "
	nilPart    = "%-"
)

// String returns the canonical text of the origin,
// topic:partition:offset:topic id:leader epoch:timestamp. An unknown topic id
// and a missing timestamp are nil parts.
func (o Origin) String() string {
	id, stamp := nilPart, nilPart
	if o.TopicID != [16]byte{} {
		id = hex.EncodeToString(o.TopicID[:])
	}
	if !o.Timestamp.IsZero() {
		stamp = escape(formatTime(o.Timestamp))
	}
	return strings.Join([]string{
		escape(o.Topic),
		strconv.FormatInt(int64(o.Partition), 10),
		strconv.FormatInt(o.Offset, 10),
		id,
		strconv.FormatInt(int64(o.LeaderEpoch), 10),
		stamp,
	}, ":")
}

// ParseOrigin reads what [Origin.String] writes and nothing else.
func ParseOrigin(s string) (Origin, error) {
	bad := func(why string) (Origin, error) {
		return Origin{}, fmt.Errorf("%s is not topic:partition:offset:topic id:leader epoch:timestamp: %s", quote(s), why)
	}
	parts := strings.Split(s, ":")
	if len(parts) != 6 {
		return bad(fmt.Sprintf("it has %d parts", len(parts)))
	}
	var o Origin
	var err error
	if o.Topic, err = unescape(parts[0]); err != nil {
		return bad("topic: " + err.Error())
	}
	partition, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil {
		return bad("the partition is not a number of 32 bits")
	}
	if o.Offset, err = strconv.ParseInt(parts[2], 10, 64); err != nil {
		return bad("the offset is not a number of 64 bits")
	}
	if parts[3] != nilPart {
		if n, err := hex.Decode(o.TopicID[:], []byte(parts[3][:min(len(parts[3]), 32)])); err != nil || n != 16 {
			return bad("the topic id is not 32 hexadecimal digits")
		}
	}
	epoch, err := strconv.ParseInt(parts[4], 10, 32)
	if err != nil {
		return bad("the leader epoch is not a number of 32 bits")
	}
	o.Partition, o.LeaderEpoch = int32(partition), int32(epoch)
	if parts[5] != nilPart {
		stamp, err := unescape(parts[5])
		if err == nil {
			o.Timestamp, err = parseTime(stamp)
		}
		if err != nil {
			return bad("timestamp: " + err.Error())
		}
	}
	if o.String() != s {
		return bad("it is not in canonical form")
	}
	return o, nil
}

func escape(s string) string {
	const upperHex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; strings.IndexByte(plainBytes, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
	return b.String()
}

// unescape is the inverse of escape; it leaves it to the caller to see that
// escaping the answer gives the text again.
func unescape(s string) (string, error) {
	if s == nilPart {
		return "", errors.New("the part is nil")
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", errors.New("an escape is cut off")
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", errors.New("an escape is not two hexadecimal digits")
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), nil
}

package requeue

import (
	"fmt"
	"strconv"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Encode makes the record that carries a copy to topic: the carrier's key, value
// and user headers, byte for byte and in order, nil staying nil, and behind them
// the library's headers, each once. The result shares the carrier's slices; its
// partition and timestamp are left to the producer.
//
// carrier is the record that was read: the original, or a copy of it. It is the
// original if its topic, partition and offset are those of c.Origin. Then all of
// its headers are the user's, and one that looks like ours (oncefence-...)
// travels with user- before its name. In a copy what looks like ours is ours
// and is replaced, so a record does not grow from attempt to attempt.
//
// maxBytes is the largest [Size] that topic takes; 0 or less means no limit. A
// copy that is larger loses error text and class first; then it becomes a
// pointer, see [Copy.Pointer]: the value is left out, if that is not enough the
// user's headers, and then the key. If even that is too large, the error matches
// [driver.ErrTooLarge]. Any other error means that c cannot travel and names the
// field: a mistake of the caller, since nothing in c is a user's unchecked text.
func Encode(c Copy, carrier driver.Record, topic string, maxBytes int) (driver.Record, error) {
	c = c.normal()
	level, err := c.check()
	if err != nil {
		return driver.Record{}, fmt.Errorf("encode copy of %s for topic %s: %w", c.Origin, topic, err)
	}
	user := userHeaders(c, carrier)
	for ; level < len(omissions); level++ {
		rec := driver.Record{Topic: topic, LeaderEpoch: -1}
		switch level {
		case omitNothing:
			rec.Key, rec.Value, rec.Headers = carrier.Key, carrier.Value, user
		case omitValue:
			rec.Key, rec.Headers = carrier.Key, user
		case omitHeaders:
			rec.Key = carrier.Key
		}
		said := c
		said.Pointer, said.Omitted = level > omitNothing, omissions[level]
		if withHeaders := said.addTo(rec); fits(withHeaders, maxBytes) {
			return withHeaders, nil
		}
		said.Class, said.Error = "", ""
		if withHeaders := said.addTo(rec); fits(withHeaders, maxBytes) {
			return withHeaders, nil
		}
	}
	return driver.Record{}, fmt.Errorf("encode copy of %s: what names it is larger than the %d bytes that topic %s takes: raise its max.message.bytes: %w",
		c.Origin, maxBytes, topic, driver.ErrTooLarge)
}

// What a pointer leaves out, less first.
const (
	omitNothing = iota
	omitValue
	omitHeaders
	omitKey
)

var omissions = []string{"", "value", "value,headers", "value,headers,key"}

// IsPointer reports whether a record that [Encode] made is a pointer.
func IsPointer(rec driver.Record) bool {
	for _, h := range rec.Headers {
		if h.Key == headerPointer {
			return true
		}
	}
	return false
}

func fits(rec driver.Record, maxBytes int) bool { return maxBytes <= 0 || Size(rec) <= maxBytes }

// userHeaders returns the carrier's user headers as they travel.
func userHeaders(c Copy, carrier driver.Record) []driver.Header {
	original := carrier.Topic == c.Origin.Topic && carrier.Partition == c.Origin.Partition && carrier.Offset == c.Origin.Offset
	var user []driver.Header
	for _, h := range carrier.Headers {
		switch {
		case original:
			h.Key = hideUser(h.Key)
		case looksOurs(h.Key):
			continue
		}
		user = append(user, h)
	}
	return user
}

// addTo returns rec with the library's headers behind its own. Fields that say
// nothing have no header.
func (c Copy) addTo(rec driver.Record) driver.Record {
	all := make([]driver.Header, 0, len(rec.Headers)+len(copyFields)+1)
	all = append(all, rec.Headers...)
	all = append(all, driver.Header{Key: headerVersion, Value: strconv.AppendInt(nil, Version, 10)})
	for _, f := range copyFields {
		if text := f.write(&c); text != "" {
			all = append(all, driver.Header{Key: f.header, Value: []byte(text)})
		}
	}
	rec.Headers = all
	return rec
}

package fence

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

const (
	offsetMark   = "%@"
	payloadMark  = "%#"
	payloadOfNil = "-"
)

// OffsetID stands in for a missing dedupe id with the record's own place in
// the log, as %@<topic id>/<leader epoch>/<offset>: 32 lower-case hexadecimal
// digits and two decimal numbers. It recognises a redelivery of the record and
// nothing else: an event sent twice is two intents. The topic id tells a topic
// from a later one of the same name, the leader epoch a log from what an
// unclean election put in its place.
func OffsetID(topicID [16]byte, leaderEpoch int32, offset int64) Part {
	var room [len(offsetMark) + 32 + 1 + 11 + 1 + 20]byte
	text := append(room[:0], offsetMark...)
	text = hex.AppendEncode(text, topicID[:])
	text = strconv.AppendInt(append(text, '/'), int64(leaderEpoch), 10)
	text = strconv.AppendInt(append(text, '/'), offset, 10)
	return Part{text: string(text), form: rawForm}
}

// PayloadID stands in for a missing dedupe id with the SHA-256 of the record's
// value, as %#<64 lower-case hexadecimal digits>, and %#- for a nil value,
// which is not an empty one. Two intents with the same bytes and message key
// are one: the second of two equal orders is taken for a duplicate.
func PayloadID(value []byte) Part {
	if value == nil {
		return Part{text: payloadMark + payloadOfNil, form: rawForm}
	}
	sum := sha256.Sum256(value)
	var room [len(payloadMark) + 2*sha256.Size]byte
	return Part{text: string(hex.AppendEncode(append(room[:0], payloadMark...), sum[:])), form: rawForm}
}

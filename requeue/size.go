package requeue

import (
	"math/bits"

	"github.com/oncefence/oncefence/consumer/driver"
)

// batchOverhead is the size of a Kafka record batch (format 2) without records.
const batchOverhead = 61

// Size returns the size in bytes of a Kafka record batch that holds nothing but
// rec, uncompressed. That is what brokers compare with max.message.bytes.
func Size(rec driver.Record) int {
	n := 1 + 1 + 1 // attributes, timestamp delta, offset delta
	n += sizedBytes(len(rec.Key), rec.Key == nil)
	n += sizedBytes(len(rec.Value), rec.Value == nil)
	n += varintSize(len(rec.Headers))
	for _, h := range rec.Headers {
		n += sizedBytes(len(h.Key), false) + sizedBytes(len(h.Value), h.Value == nil)
	}
	return batchOverhead + varintSize(n) + n
}

// sizedBytes is the size of bytes with their length before them, -1 for nil.
func sizedBytes(n int, null bool) int {
	if null {
		return 1
	}
	return varintSize(n) + n
}

// varintSize is the size of a number that is not negative as zigzag varint.
func varintSize(n int) int { return max(1, (bits.Len64(uint64(n)<<1)+6)/7) }

// Sizer is implemented by producers that know how large records may be.
type Sizer interface {
	// MaxBytes returns the largest [Size] that a topic takes, 0 if not known.
	MaxBytes(topic string) int
}

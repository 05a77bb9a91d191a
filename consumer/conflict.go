package consumer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/fence"
)

const (
	// diffs is how many first payloads are read again at once. A conflict beyond
	// that goes out without a diff: its dead letter is what matters.
	diffs       = 4
	diffTimeout = 5 * time.Second
	diffFields  = 20
)

// conflicting ends a delivery whose key stands for another payload: both
// digests, and what differs where the first payload can be read again.
func (l *loop) conflicting(it *item) {
	first := it.found
	cause := fmt.Errorf("the key stands for another payload: fingerprint %s, first seen at %s:%d:%d with %s",
		fence.FormatFingerprint(it.fingerprint), first.Origin.Topic, first.Origin.Partition, first.Origin.Offset, fence.FormatFingerprint(first.Fingerprint))
	reader, can := l.source.(driver.Reader)
	if !can || first.Origin.Source != l.info.System || l.diffing >= diffs {
		l.deadLetter(it, DecisionConflict, "conflict", cause)
		return
	}
	l.diffing++
	it.stage = stageClaiming
	go func() {
		ctx, cancel := context.WithTimeout(l.calls, diffTimeout)
		defer cancel()
		tp := driver.TopicPartition{Topic: first.Origin.Topic, Partition: first.Origin.Partition}
		diff := "the first payload cannot be read again"
		if rec, err := reader.Read(ctx, tp, first.Origin.Offset); err == nil {
			if fence.FingerprintOf(rec.Value) == first.Fingerprint {
				diff = payloadDiff(rec.Value, it.rec.Value)
			}
		}
		l.post(func() {
			l.diffing--
			l.deadLetter(it, DecisionConflict, "conflict", fmt.Errorf("%w; %s", cause, diff))
		})
	}()
}

// payloadDiff says where two payloads differ without showing what they hold:
// the names of the fields of two JSON objects, else the first byte.
func payloadDiff(first, second []byte) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(first, &a) == nil && json.Unmarshal(second, &b) == nil && a != nil && b != nil {
		var changed []string
		for name, value := range a {
			if other, both := b[name]; !both {
				changed = append(changed, name+" (only in the first)")
			} else if !bytes.Equal(value, other) {
				changed = append(changed, name)
			}
		}
		for name := range b {
			if _, both := a[name]; !both {
				changed = append(changed, name+" (only in the second)")
			}
		}
		if len(changed) > 0 {
			slices.Sort(changed)
			more := ""
			if len(changed) > diffFields {
				more = fmt.Sprintf(" and %d more", len(changed)-diffFields)
				changed = changed[:diffFields]
			}
			return "fields that differ: " + strings.Join(changed, ", ") + more
		}
	}
	at := 0
	for at < len(first) && at < len(second) && first[at] == second[at] {
		at++
	}
	return fmt.Sprintf("first difference at byte %d, lengths %d and %d", at, len(first), len(second))
}

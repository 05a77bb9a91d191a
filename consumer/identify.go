package consumer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/requeue"
)

// Header names that the loop reads, compared without case.
const (
	headerID          = "idempotency-key"
	headerEventSource = "ce_source"
	headerEventID     = "ce_id"
	headerTraceParent = "traceparent"
	headerTraceState  = "tracestate"
)

// identifier turns records into items. It runs in the poller's goroutine and
// owns no state of the loop.
type identifier struct {
	namespace fence.Namespace
	scope     fence.Scope
	extract   func(Record) (string, error)
	missing   MissingID
	topics    *requeue.Topics
	clock     requeue.AppendClock
}

// identify fills it.key, fingerprint, effect id, attempt and origin. What cannot
// be identified gets it.poison.
func (d *identifier) identify(it *item, now time.Time) {
	rec := it.rec
	it.attempt = 1
	it.headers = rec.Headers
	it.origin = requeue.Origin{
		Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, TopicID: rec.TopicID,
		LeaderEpoch: rec.LeaderEpoch, Timestamp: rec.Timestamp,
	}
	place, known := d.topics.Lookup(rec.Topic)
	if !known {
		place = requeue.Place{Topic: rec.Topic, Source: rec.Topic, Kind: requeue.SourceTopic}
	}
	it.place = place
	it.fingerprint = fence.FingerprintOf(rec.Value)
	if place.Kind == requeue.SourceTopic {
		d.original(it)
	} else {
		d.copied(it, now)
	}
	if it.poison == "" {
		it.effectID = fence.EffectID(d.namespace, it.key)
	}
}

func (d *identifier) original(it *item) {
	rec := it.rec
	id, second, err := d.dedupeID(rec)
	if err != nil {
		it.poison, it.poisonErr = "dedupe id", err
		return
	}
	messageKey := fence.Bytes(rec.Key)
	switch {
	case second != "":
		it.key = fence.RecordKey(d.scope, rec.Topic, rec.Partition, messageKey, fence.Text(id), fence.Text(second))
	case id != "":
		it.key = fence.RecordKey(d.scope, rec.Topic, rec.Partition, messageKey, fence.Text(id))
	case d.missing == MissingOffset:
		it.missingID = true
		it.key = fence.RecordKey(d.scope, rec.Topic, rec.Partition, messageKey, fence.OffsetID(rec.TopicID, rec.LeaderEpoch, rec.Offset))
	case d.missing == MissingPayloadHash:
		it.missingID = true
		it.key = fence.RecordKey(d.scope, rec.Topic, rec.Partition, messageKey, fence.PayloadID(rec.Value))
	default:
		it.poison, it.poisonErr = "missing dedupe id", errors.New("the record has no dedupe id, and the policy for that is reject: set one at the producer (header idempotency-key) or choose another policy")
	}
}

// dedupeID returns the id, and for CloudEvents the second part.
func (d *identifier) dedupeID(rec *driver.Record) (id, second string, err error) {
	if d.extract != nil {
		id, err = extracted(d.extract, rec)
		return strings.TrimSpace(id), "", err
	}
	id, err = oneHeader(rec.Headers, headerID)
	if id != "" || err != nil {
		return id, "", err
	}
	source, err := oneHeader(rec.Headers, headerEventSource)
	if err != nil {
		return "", "", err
	}
	event, err := oneHeader(rec.Headers, headerEventID)
	if source == "" || event == "" || err != nil {
		return "", "", err
	}
	return source, event, nil
}

// extracted calls the user's function. A panic is an error: one record must not
// take the process down again and again.
func extracted(extract func(Record) (string, error), rec *driver.Record) (id string, err error) {
	defer func() {
		if v := recover(); v != nil {
			id, err = "", fmt.Errorf("consumer.Options.DedupeID panicked with a value of type %T", v)
		}
	}()
	return extract(*rec)
}

// oneHeader returns the header's value, "" when it is missing, empty or blank.
// The same name twice with different values is an error; a name is compared
// without case.
func oneHeader(headers []driver.Header, name string) (string, error) {
	var value []byte
	for _, h := range headers {
		if len(h.Key) != len(name) || !strings.EqualFold(h.Key, name) {
			continue
		}
		v := bytes.TrimSpace(h.Value)
		if len(v) == 0 {
			continue
		}
		if value != nil && !bytes.Equal(value, v) {
			return "", fmt.Errorf("header %s stands more than once with different values", name)
		}
		value = v
	}
	return string(value), nil
}

// copied identifies a record of the group's own retry topics by its headers.
func (d *identifier) copied(it *item, now time.Time) {
	c, user, err := requeue.Decode(*it.rec)
	if err != nil {
		it.poison, it.poisonErr = "unreadable copy", err
		return
	}
	it.copy, it.headers, it.origin = &c, user, c.Origin
	if c.Namespace != d.namespace.Text() {
		it.poison, it.foreign = "copy of another namespace", true
		it.poisonErr = fmt.Errorf("the copy belongs to namespace %q, this consumer's is %q", c.Namespace, d.namespace.Text())
		return
	}
	key, err := fence.KeyFromText(c.KeyText)
	if err != nil {
		it.poison, it.poisonErr = "unreadable copy", err
		return
	}
	it.key = key
	if c.Pointer {
		it.poison, it.poisonErr = "pointer", errors.New("the copy is only a pointer to its original and has no value to process")
		return
	}
	if c.Fingerprint != "" {
		if f, err := fence.ParseFingerprint(c.Fingerprint); err == nil && f.Differs(it.fingerprint) {
			it.poison, it.poisonErr = "damaged copy", fmt.Errorf("the copy's value has fingerprint %s, its header says %s", fence.FormatFingerprint(it.fingerprint), c.Fingerprint)
			return
		}
	}
	it.attempt, it.step = max(c.Attempt, 1), c.Step
	it.due = requeue.Due(it.place, *it.rec, c, now, d.clock.Offset(*it.rec, now))
	if remaining, hop := requeue.Hop(it.place, c); hop {
		it.hop = remaining
	}
}

// input builds what the effect is called with.
func (l *loop) input(it *item) effect.Input {
	in := effect.Input{
		Key: it.key.Text(), Namespace: l.namespace.Text(), EffectID: it.effectID, Attempt: int(it.attempt), Step: int(it.step),
		MessageKey: it.rec.Key, Payload: it.rec.Value,
		Origin: effect.Origin{
			Source: l.info.System, Topic: it.origin.Topic, Partition: it.origin.Partition, Offset: it.origin.Offset, Timestamp: it.origin.Timestamp,
		},
	}
	if it.hold != nil {
		r := it.hold.Record()
		in = in.WithKeeper(it)
		in.Token, in.Attempt, in.Step, in.FirstSeen = r.Token, int(r.Attempt), int(r.Step), time.UnixMicro(r.FirstSeen).UTC()
	}
	if len(it.headers) > 0 {
		in.Headers = make([]effect.Header, len(it.headers))
		for i, h := range it.headers {
			in.Headers[i] = effect.Header(h)
			switch {
			case len(h.Key) == len(headerTraceParent) && in.TraceParent == "" && strings.EqualFold(h.Key, headerTraceParent):
				in.TraceParent = string(h.Value)
			case len(h.Key) == len(headerTraceState) && in.TraceState == "" && strings.EqualFold(h.Key, headerTraceState):
				in.TraceState = string(h.Value)
			}
		}
		if !validTraceParent(in.TraceParent) {
			in.TraceParent, in.TraceState = "", ""
		}
	}
	return in
}

// validTraceParent checks the shape of a W3C traceparent of version 00 or a
// later one: a malformed one is not handed on.
func validTraceParent(s string) bool {
	if len(s) < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" || (s[:2] == "00" && len(s) != 55) {
		return false
	}
	for i := range 55 {
		c := s[i]
		dash := i == 2 || i == 35 || i == 52
		if !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s[3:35] != strings.Repeat("0", 32) && s[36:52] != strings.Repeat("0", 16)
}

package consumer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/internal/fault"
	"github.com/oncefence/oncefence/requeue"
)

// pointerBytes is what a dead letter may take when its topic refused the whole
// record: headers and key, not the value.
const pointerBytes = 64 << 10

// smallPointerBytes is the second try: what names the record, in a topic that
// takes very little.
const smallPointerBytes = 4 << 10

// describe fills what every copy carries.
func (l *loop) describe(it *item) requeue.Copy {
	c := requeue.Copy{
		KeyText: it.key.Text(), Namespace: l.namespace.Text(), Attempt: it.attempt, Step: it.step, Origin: it.origin,
		Fingerprint: fence.FormatFingerprint(it.fingerprint),
	}
	if it.copy != nil {
		c.FirstSeen = it.copy.FirstSeen
	}
	if it.hold != nil {
		r := it.hold.Record()
		c.Attempt, c.Step, c.FirstSeen = r.Attempt, r.Step, time.UnixMicro(r.FirstSeen).UTC()
		c.Origin = firstOrigin(it.origin, r.Origin)
	}
	return c
}

// firstOrigin is the origin that a copy carries: that of the key's first claim,
// also when another line with the same key and payload has taken it over. Who
// asks what became of a line finds its dead letter by its own coordinates, and
// the other line is a duplicate of it.
func firstOrigin(own requeue.Origin, first fencedriver.Origin) requeue.Origin {
	if first.Topic == "" || (first.Topic == own.Topic && first.Partition == own.Partition && first.Offset == own.Offset) {
		return own
	}
	o := requeue.Origin{Topic: first.Topic, Partition: first.Partition, Offset: first.Offset, LeaderEpoch: -1}
	if first.Timestamp != 0 {
		o.Timestamp = time.UnixMilli(first.Timestamp).UTC()
	}
	if first.Topic == own.Topic {
		o.TopicID = own.TopicID
	}
	return o
}

// classText is the class of the outcome, "" if the effect did not run here.
func classText(it *item) string {
	if !it.ran {
		return ""
	}
	return it.class.String()
}

// produceCopy writes the copy of the next attempt to a delay topic.
func (l *loop) produceCopy(it *item) {
	c := l.describe(it)
	c.Attempt++
	c.Step++
	if it.hold != nil && it.hold.Record().Verdict == fencedriver.VerdictRetry {
		c.Attempt, c.Step = it.hold.Record().NextAttempt, it.hold.Record().NextStep
	}
	c.Delay = it.wait
	c.Reason, c.Class, c.Error = "retry", classText(it), it.verdict.Reason
	topic := l.topics.RetryTopic(it.place.Source, it.wait)
	if topic == "" { // no delay topics: the holder waits itself
		l.waitInPlace(it, time.Now())
		return
	}
	if !l.fenced {
		it.settles, it.decision = true, DecisionRequeued
	}
	it.reason = it.verdict.Reason
	l.produce(it, c, topic, 0)
}

// move writes a copy with the same attempt to a delay topic; it settles the
// delivery.
func (l *loop) move(it *item, delay time.Duration, reason string) {
	topic := l.topics.RetryTopic(it.place.Source, delay)
	if delay == 0 {
		topic = l.topics.Shortest(it.place.Source)
		if p, ok := l.topics.Lookup(topic); ok {
			delay = p.Delay
		}
	}
	c := l.describe(it)
	c.Delay, c.Reason = delay, reason
	it.settles, it.decision, it.reason = true, DecisionMoved, reason
	l.produce(it, c, topic, 0)
}

// deadLetter writes the dead letter. With a decision it settles the delivery by
// itself; without one the key is buried afterwards.
func (l *loop) deadLetter(it *item, decision, reason string, cause error) {
	c := l.describe(it)
	c.Reason, c.Class, c.Error = reason, classText(it), errorText(cause)
	if it.doubt {
		c.Class = "in_doubt"
	}
	if steps := it.appliedSteps(); steps != "" {
		c.Error = strings.TrimPrefix(c.Error+"; "+steps, "; ")
	}
	if decision == DecisionConflict {
		c.OtherFingerprint = fence.FormatFingerprint(it.conflict)
	}
	it.settles, it.decision, it.reason = decision != "", decision, reason
	if cause != nil {
		it.reason = withCause(reason, cause)
	}
	l.produce(it, c, l.topics.DeadLetter(it.place.Source), 0)
}

// produce encodes and queues a record that goes out.
func (l *loop) produce(it *item, c requeue.Copy, topic string, maxBytes int) {
	out, err := requeue.Encode(c, *it.rec, topic, maxBytes)
	if err != nil {
		// Nothing was produced and nothing is settled: the partition stands and
		// Healthy says why.
		l.opts.Logger.Error("oncefence: cannot encode a copy", "idempotency_key", it.key.Text(), "source_id", sourceID(it), "error", err)
		it.cause = err
		it.stage = stageWaitRetry
		l.timers.add(it, time.Now().Add(time.Minute))
		return
	}
	l.notAlone(it)
	it.outgoing = out
	it.stage = stageProduceQ
	l.produceQ.push(it)
}

// pumpProduces sends what goes out, one request a topic at a time, so that a
// topic that takes nothing holds back only its own records.
func (l *loop) pumpProduces() {
	if l.produceQ.len() == 0 {
		return
	}
	batches := make(map[string][]*item)
	var kept []*item
	for l.produceQ.len() > 0 {
		it := l.produceQ.pop()
		topic := it.outgoing.Topic
		if l.producing[topic] || len(batches[topic]) >= l.opts.BatchSize {
			kept = append(kept, it)
			continue
		}
		batches[topic] = append(batches[topic], it)
	}
	l.produceQ.set(kept)
	for topic, batch := range batches {
		l.producing[topic] = true
		records := make([]driver.Record, len(batch))
		for i, it := range batch {
			it.stage = stageProducing
			records[i] = it.outgoing
		}
		go func() {
			ctx, cancel := context.WithTimeout(l.calls, l.opts.DrainTimeout)
			fault.Point(fault.ProduceBefore)
			errs := l.opts.Producer.Produce(ctx, records)
			fault.Point(fault.ProduceAfter)
			cancel()
			l.post(func() { delete(l.producing, topic); l.produced(batch, errs) })
		}()
	}
}

func (l *loop) produced(batch []*item, errs []error) {
	now := time.Now()
	for i, it := range batch {
		err := errors.New("the producer did not answer for this record")
		if i < len(errs) {
			err = errs[i]
		}
		switch {
		case err == nil:
			l.acknowledged(it)
		case errors.Is(err, driver.ErrTooLarge):
			l.tooLarge(it, now)
		default:
			it.cause = err
			if it.tries == 0 || it.tries%16 == 0 {
				l.opts.Logger.Warn("oncefence: a copy or dead letter was not acknowledged: it is produced again", "topic", it.outgoing.Topic, "source_id", sourceID(it), "error", err)
			}
			l.later(it, now)
		}
	}
}

// acknowledged goes on after all replicas have the copy or dead letter.
func (l *loop) acknowledged(it *item) {
	it.tries = 0
	place, _ := l.topics.Lookup(it.outgoing.Topic)
	it.outgoing = Record{}
	switch {
	case it.settles:
		l.end(it, it.decision)
	case place.Kind == requeue.DeadLetterTopic:
		l.apply(it, fencedriver.Bury)
	default:
		l.apply(it, fencedriver.HandOver)
	}
}

// tooLarge: a dead letter becomes a pointer to its original; a retry waits in
// place.
func (l *loop) tooLarge(it *item, now time.Time) {
	place, _ := l.topics.Lookup(it.outgoing.Topic)
	c, _, err := requeue.Decode(it.outgoing)
	if err != nil {
		l.later(it, now)
		return
	}
	switch {
	case place.Kind == requeue.DeadLetterTopic && !c.Pointer:
		l.produce(it, c, place.Topic, pointerBytes)
	case place.Kind == requeue.DeadLetterTopic && requeue.Size(it.outgoing) > smallPointerBytes:
		l.produce(it, c, place.Topic, smallPointerBytes)
	case place.Kind == requeue.DeadLetterTopic: // smaller it does not get
		it.cause = fmt.Errorf("dead-letter topic %s takes not even a pointer: raise its max.message.bytes: %w", place.Topic, driver.ErrTooLarge)
		l.opts.Logger.Error("oncefence: "+it.cause.Error(), "source_id", sourceID(it))
		l.later(it, now)
	case it.hold != nil:
		l.opts.Logger.Warn("oncefence: a copy is larger than its retry topic takes: the retry waits in place", "topic", place.Topic, "source_id", sourceID(it))
		l.waitInPlace(it, now)
	case it.decision == DecisionMoved:
		it.outgoing, it.settles, it.heldSince = Record{}, false, time.Time{}
		it.stage = stageHeld
		if it.hop > 0 { // it has not entered its lane
			it.hop, it.stage = 0, stageWaitDue
		}
		l.timers.add(it, now.Add(max(c.Delay, time.Second)))
	default:
		it.outgoing, it.settles = Record{}, false
		it.attempt++
		it.step++
		it.stage = stageWaitRetry
		l.timers.add(it, now.Add(it.wait))
	}
}

// orphanReturned seals what an effect that was given up has applied after all.
func (l *loop) orphanReturned(it *item) {
	if it.hold == nil {
		return
	}
	if it.class != effect.ClassApplied || it.probe || !it.called {
		it.hold.Drop()
		l.opts.Logger.Warn("oncefence: an effect that was given up has returned without an applied effect", "idempotency_key", it.key.Text(), "error", errorText(it.outcome.Err))
		return
	}
	l.apply(it, fencedriver.Seal)
}

func (l *loop) orphanSealed(it *item, a *fencedriver.Applied) {
	const returned = "an effect that was given up has returned as applied"
	if a.Outcome == fencedriver.OK {
		l.decide(it, DecisionDone, returned)
	} else {
		l.decide(it, DecisionLateSeal, fmt.Sprintf("%s, seal %s: the key is %s with token %d, this holder's is %d; receipt of %d bytes, effect id %q",
			returned, a.Outcome, a.Record.State, a.Record.Token, it.hold.Token(), len(it.outcome.Receipt.Payload), it.outcome.Receipt.EffectID))
	}
	it.hold.Drop()
}

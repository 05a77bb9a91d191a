package consumer

import (
	"log/slog"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Decisions, the closed set of words in logs and metrics.
const (
	DecisionNew         = "new"          // claimed; the effect runs
	DecisionDone        = "done"         // sealed
	DecisionDuplicate   = "duplicate"    // sealed before: dropped
	DecisionHeld        = "held"         // another claim holds the key: asked again
	DecisionInDoubt     = "in_doubt"     // nobody knows whether the effect was applied
	DecisionConflict    = "conflict"     // the key is used for another payload
	DecisionSuperseded  = "superseded"   // a later copy is in the broker: dropped
	DecisionDead        = "dead"         // ended as a dead letter before: dropped
	DecisionRequeued    = "requeued"     // a copy waits for its time
	DecisionDeadLetter  = "dead_letter"  // ended as a dead letter now
	DecisionParked      = "parked"       // ended as a dead letter, in doubt
	DecisionPoison      = "poison"       // cannot be identified or decoded
	DecisionMoved       = "moved"        // held or delayed too long: a copy waits
	DecisionReleased    = "released"     // claimed, not started, given back
	DecisionLateSeal    = "late_seal"    // sealed too late: the key had moved on
	DecisionVanished    = "vanished"     // sealed, but the claim's record was gone
	DecisionMissingID   = "missing_id"   // the policy for missing ids gave the id
	DecisionLostClaim   = "lost_claim"   // another holder took the key over
	DecisionUnknown     = "unknown"      // an effect ended without a word
	DecisionForeignCopy = "foreign_copy" // a copy of another namespace
	DecisionAbandoned   = "abandoned"    // an effect did not return after its lease
)

// Decision is one decision about one delivery.
type Decision struct {
	// Decision is one of the Decision constants.
	Decision string
	// Topic is the source topic that the delivery belongs to (of the original,
	// for copies); the set is closed.
	Topic string
	// Record is the delivery.
	Record *driver.Record
	// Key is the canonical text, "" for poison. EffectID is ours, or the sink's
	// once sealed.
	Key      string
	EffectID string
	Attempt  uint32
	// Origin coordinates, those of the original record.
	OriginPartition int32
	OriginOffset    int64
	// SinceFirstSeen is, with DecisionDone, the time from first seen to seal.
	SinceFirstSeen time.Duration
	// Reason tells more, for people. Never a payload.
	Reason string
}

// Gauges is the state of a consumer at one time.
type Gauges struct {
	Running        int           // effects that run
	InFlight       int           // records handed to the loop and not settled
	Held           int           // records whose key another claim holds
	InDoubt        int           // records in doubt that are being resolved
	OldestInDoubt  time.Duration // since first seen
	StoreDownSince time.Time     // zero: the store answers
	SkippedOffsets int64         // that configured resets have jumped over in this run
	Partitions     []PartitionGauges
}

// PartitionGauges is the state of one assigned partition.
type PartitionGauges struct {
	driver.TopicPartition
	Committed int64 // -1: none yet
	Mark      int64 // the low-water mark: what could be committed
	Lag       int64 // records between the commit and the last stable offset; -1 not known
	InFlight  int
	Paused    bool
}

// Observer sees what a consumer does. Decided and Batch are called from the
// loop and must not block.
type Observer interface {
	// Delivered is called for each poll with the number of records, copies
	// included.
	Delivered(records int)
	// Decided is called for each decision.
	Decided(d Decision)
	// Ran is called when an effect has ended: kind of effect, class of its
	// outcome, how long it took.
	Ran(kind, class string, took time.Duration)
	// Gauges is called about once a second.
	Gauges(g Gauges)
	// Committed is called after each commit with the number of partitions and of
	// those that failed.
	Committed(partitions, failed int)
}

type noObserver struct{}

func (noObserver) Delivered(int)                     {}
func (noObserver) Decided(Decision)                  {}
func (noObserver) Ran(string, string, time.Duration) {}
func (noObserver) Gauges(Gauges)                     {}
func (noObserver) Committed(int, int)                {}

func decisionLevel(decision string) slog.Level {
	switch decision {
	case DecisionNew, DecisionDone, DecisionDuplicate, DecisionHeld, DecisionSuperseded, DecisionReleased, DecisionMissingID:
		return slog.LevelDebug
	case DecisionRequeued, DecisionMoved, DecisionDead:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// decide reports a decision to the log and the observer.
func (l *loop) decide(it *item, decision, reason string) {
	d := Decision{
		Decision: decision, Topic: it.place.Source, Record: it.rec, Key: it.key.Text(), EffectID: it.effectID, Attempt: it.attempt,
		OriginPartition: it.origin.Partition, OriginOffset: it.origin.Offset, Reason: reason,
	}
	if it.hold != nil {
		d.Attempt = it.hold.Record().Attempt
		if decision == DecisionDone {
			d.SinceFirstSeen = max(0, time.Duration(l.storeNow()-it.hold.Record().FirstSeen)*time.Microsecond)
		}
	}
	if decision == DecisionDone && it.outcome.Receipt.EffectID != "" {
		d.EffectID = it.outcome.Receipt.EffectID
	}
	l.opts.Observer.Decided(d)
	level := decisionLevel(decision)
	if !l.opts.Logger.Enabled(l.calls, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("idempotency_key", d.Key), slog.String("decision", decision), slog.String("effect_id", d.EffectID),
		slog.String("source_type", l.info.System), slog.String("source_id", sourceID(it)),
		slog.Uint64("attempt", uint64(d.Attempt)),
	}
	if reason != "" {
		attrs = append(attrs, slog.String("reason", reason))
	}
	l.opts.Logger.LogAttrs(l.calls, level, "oncefence: "+decision, attrs...)
}

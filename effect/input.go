package effect

import "time"

// Header is one header of the record, in the order of the record. A nil Value
// is not an empty one.
type Header struct {
	Key   string
	Value []byte
}

// Origin says where the record was first read. A copy that went through a
// retry topic or was replayed keeps the coordinates of the original.
type Origin struct {
	Source    string
	Topic     string
	Partition int32
	Offset    int64
	Timestamp time.Time
}

// Input is what an effect is called with. The bytes in it belong to the
// record: an effect may keep them but must not change them.
type Input struct {
	// Key is the canonical text of the idempotency key.
	Key string
	// Namespace is the canonical text of tenant and group.
	Namespace string
	// EffectID names the effect towards its sink. It is a function of
	// Namespace and Key, so it is the same over attempts, processes,
	// releases and replays, and differs between groups. A sink that dedupes
	// must dedupe by it.
	EffectID string
	// Token is the fencing token of the claim. It grows with each claim of
	// the key: a sink that refuses a token below the highest it has seen for
	// EffectID refuses a holder that lost its lease. 0 under AtLeastOnce.
	Token uint64
	// Attempt counts the runs of the effect for this key, from 1. It grows
	// over crashes and replays.
	Attempt int
	// Step is the place in the retry schedule, from 0. It starts anew after a
	// replay.
	Step int
	// MessageKey is the key of the record; nil is not empty.
	MessageKey []byte
	// Payload is the value of the record; nil (a tombstone) is not empty.
	Payload []byte
	// Headers are the user's headers in the order of the record.
	Headers []Header
	// Origin is where the record was first read.
	Origin Origin
	// FirstSeen is when the key was first claimed, by the clock of the store.
	FirstSeen time.Time
	// TraceParent and TraceState are the W3C trace context of the record, to
	// be handed on to the sink. Empty if the record has none.
	TraceParent string
	TraceState  string

	keeper Keeper
}

package driver

import "time"

// Marker is what a namespace keeps beside its records. Merge says how two
// meet.
type Marker struct {
	// Epoch is random and made once: another one means that the store was
	// emptied or is not the one used before. Offered by the caller, kept from
	// the first call on.
	Epoch [16]byte
	// Format is the version of the stored records, kept from the first call.
	Format uint8
	// Buckets is the number of key buckets (stores without buckets: 0), kept
	// from the first call.
	Buckets uint16
	// Partitions holds the highest partition count seen for each topic.
	Partitions map[string]int32
	// Committed holds the highest offset committed for each partition.
	Committed map[TopicPartition]int64
	// Now is the store's clock, in answers only.
	Now int64
}

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Merge returns m with update merged into it: what is kept from the first call
// stays, counts and offsets only grow.
func (m Marker) Merge(update Marker) Marker {
	if m.Epoch == ([16]byte{}) {
		m.Epoch, m.Format, m.Buckets = update.Epoch, update.Format, update.Buckets
	}
	partitions := make(map[string]int32, len(m.Partitions)+len(update.Partitions))
	for _, from := range []map[string]int32{m.Partitions, update.Partitions} {
		for topic, n := range from {
			partitions[topic] = max(partitions[topic], n)
		}
	}
	committed := make(map[TopicPartition]int64, len(m.Committed)+len(update.Committed))
	for _, from := range []map[TopicPartition]int64{m.Committed, update.Committed} {
		for tp, offset := range from {
			committed[tp] = max(committed[tp], offset)
		}
	}
	m.Partitions, m.Committed = partitions, committed
	return m
}

// Level orders how much of a store's answers survives what.
type Level uint8

const (
	// GradeUnknown: the store does not tell.
	GradeUnknown Level = iota
	// GradeVolatile: nothing survives the store's process.
	GradeVolatile
	// GradeRestart: survives the store's process, not always the machine's.
	GradeRestart
	// GradeMachine: on disk before the answer.
	GradeMachine
	// GradeReplicated: on other machines before the answer.
	GradeReplicated
)

var levelNames = [...]string{"unknown", "volatile", "restart", "machine", "replicated"}

// String returns the level's word.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return "unknown"
}

// Grade is a store's level with the settings it was read from.
type Grade struct {
	Level Level
	// Detail names the settings, for a person.
	Detail string
	// Eviction is the store's eviction policy where it has one; anything but
	// "" and "noeviction" may drop records.
	Eviction string
	// Skew is the store's clock minus the local one when the grade was read.
	Skew time.Duration
}

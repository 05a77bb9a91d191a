package fence

import (
	"fmt"
	"strconv"
)

// Scope says how much of a record's place is part of its key: within what a
// dedupe id must be unique, and which copies of one event are one intent. The
// zero Scope is ScopePartition. Changing the scope of a running consumer
// changes every key: nothing sealed before is known any more.
type Scope uint8

const (
	// ScopePartition is topic:partition:key:id. The same event sent to another
	// partition, after a change of the partition count say, is another key.
	ScopePartition Scope = iota
	// ScopeTopic is topic::key:id.
	ScopeTopic
	// ScopeID is :::id. The id alone decides, over all topics of the group.
	ScopeID
)

var scopeNames = [...]string{"partition", "topic", "id"}

// String returns the scope's name in options and on the command line.
func (s Scope) String() string {
	if int(s) < len(scopeNames) {
		return scopeNames[s]
	}
	return "unknown(" + strconv.Itoa(int(s)) + ")"
}

// ParseScope is the inverse of [Scope.String].
func ParseScope(name string) (Scope, error) {
	for i, known := range scopeNames {
		if name == known {
			return Scope(i), nil
		}
	}
	return 0, fmt.Errorf("key scope %q is not known: use partition, topic or id", name)
}

// RecordKey makes the key of a record from its place, its message key and its
// dedupe id. The id is one part, or two for CloudEvents (source, then id).
// What the scope leaves out stands as an empty part. A record whose id is
// missing gets [OffsetID] or [PayloadID] in its place, by the caller's policy;
// without any dedupe part, or with an unknown scope, the answer is the zero
// Key.
//
// Keys of different scopes differ as long as the topic has a name.
func RecordKey(scope Scope, topic string, partition int32, messageKey Part, dedupe ...Part) Key {
	if len(dedupe) == 0 || int(scope) >= len(scopeNames) {
		return Key{}
	}
	place := [3]Part{Text(""), Text(""), Text("")}
	var digits [len("-2147483648")]byte
	if scope != ScopeID {
		place[0], place[2] = Text(topic), messageKey
	}
	if scope == ScopePartition {
		place[1] = Bytes(strconv.AppendInt(digits[:0], int64(partition), 10))
	}
	return keyOf(joinText(place[:], dedupe))
}

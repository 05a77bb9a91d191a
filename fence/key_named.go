package fence

import "strconv"

// GeneralKey is the key of one action on one revision of a source:
// sourceType:sourceID:revision:indexHash:action. Leave what does not apply
// empty; the part stays.
//
// Keys of one namespace should be of one make. A general key, an event key and
// a record key are told apart by what their parts say, not by a mark.
func GeneralKey(sourceType, sourceID, revision, indexHash, action string) Key {
	return JoinKey(Text(sourceType), Text(sourceID), Text(revision), Text(indexHash), Text(action))
}

// EventKey is the key of an event that a run emits: runID:eventType:stepIndex,
// the step in decimal. It is the same when the event is sent again, and another
// one when the run repeats the step under the next index.
func EventKey(runID, eventType string, stepIndex int) Key {
	return JoinKey(Text(runID), Text(eventType), Text(strconv.Itoa(stepIndex)))
}

// DocumentKey is the key of ingesting one content of a document:
// doc:docID:contentHash.
func DocumentKey(docID, contentHash string) Key {
	return JoinKey(Text("doc"), Text(docID), Text(contentHash))
}

// IndexKey is the key of building an index: index:indexHash.
func IndexKey(indexHash string) Key {
	return JoinKey(Text("index"), Text(indexHash))
}

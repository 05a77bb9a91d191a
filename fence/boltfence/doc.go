// Package boltfence keeps a fence in one bbolt file: the embedded default.
//
// One process at a time has the file open. Every answer that changed something
// is on disk before it is given: one fsync (two, as bbolt counts) for a batch,
// shared by all batches that wait at that moment. A process that is killed
// leaves a file that opens at once, with every answered batch in it and none
// in part.
//
// The file holds a bucket "oncefence" with the format's number, "markers" with
// the namespaces' markers, and for each namespace three buckets:
//
//   - "open/<namespace>": the pending records. Key: 32 bytes of digest, value: the
//     packed record of fence/driver. The bucket's sequence is the last fencing
//     token.
//   - "records/<namespace>": all others, in the same form. A key stands in one of
//     the two. Pending records come and go and are three times as large as done:
//     apart from them, done fills its pages, and a claim touches few.
//   - "expiry/<namespace>": what expires when. Key: milliseconds since 1970 and a
//     sequence number, 8 bytes each, big endian; value: the digests.
package boltfence

// Package boltfence keeps a fence in one bbolt file: the embedded default.
//
// One process at a time has the file open. Every answer that changed something
// is on disk before it is given: one fsync (two, as bbolt counts) for a batch,
// shared by all batches that wait at that moment. A process that is killed
// leaves a file that opens at once, with every answered batch in it and none
// in part.
//
// The file holds a bucket "oncefence" with the format's number, and for each
// namespace a bucket "records/<namespace>" (key: 32 bytes of digest, value: the
// packed record of fence/driver; the bucket's sequence is the last fencing
// token) and a bucket "expiry/<namespace>" (key: milliseconds since 1970 and a
// sequence number, 8 bytes each, big endian; value: the digests of records that
// expire then). "markers" holds the namespaces' markers.
package boltfence

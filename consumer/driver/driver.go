// Package driver is the small interface that a source of records implements,
// and the one by which copies and dead letters are written back.
//
// Users do not call it; they hand a source to the consumer package. A source
// for another broker implements [Source] and passes consumer/consumertest.
package driver

import (
	"context"
	"errors"
	"time"
)

// ErrClosed is returned by Poll and Commit after Close.
var ErrClosed = errors.New("source is closed")

// ErrFatal is matched by an error of Poll after which the member can never get
// records again (fenced by a twin, authorisation gone, group deleted). The loop
// stops with it.
var ErrFatal = errors.New("source cannot go on")

// ErrNotOwned is matched by a commit's error for a partition that this member
// does not own any more. The loop treats the partition as lost.
var ErrNotOwned = errors.New("partition is not owned by this member")

// ErrTooLarge is matched by a produce error that says that the record is larger
// than its topic takes. Nothing was written.
var ErrTooLarge = errors.New("record is larger than its topic takes")

// Header is one record header. A nil Value is not an empty one.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record as the broker holds it. Nil and empty keys and values
// are different. The loop treats all slices as read-only; a source must not
// change them after Poll has returned them.
type Record struct {
	Topic       string
	Partition   int32
	Offset      int64
	LeaderEpoch int32    // -1: not known
	TopicID     [16]byte // zero: the source has none
	Key         []byte
	Value       []byte
	Headers     []Header
	Timestamp   time.Time
	// AppendTime says that Timestamp is the broker's append time, not the
	// producer's.
	AppendTime bool
}

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Offset is a position to commit: the offset of the next record to read.
type Offset struct {
	TopicPartition
	Offset      int64
	LeaderEpoch int32  // of the last record before Offset; -1: not known
	Metadata    string // ASCII, at most 200 bytes
}

// Assignment is one partition given to this member.
type Assignment struct {
	TopicPartition
	// Generation numbers this assignment. The same partition gets a higher one
	// each time it is assigned to this member again.
	Generation uint64
	TopicID    [16]byte
	// Committed is the group's committed position, -1 if there was none. The
	// source has then committed its first position itself, or says in Start's
	// or Poll's error why it cannot.
	Committed int64
	Metadata  string // of the commit
	// Partitions is the number of partitions of the topic, 0 if not known.
	Partitions int32
}

// Handler is what the loop hands to Source.Start. The source calls it from any
// goroutine, never two calls at once.
type Handler interface {
	// Assigned gives partitions. It returns soon. No record of an assignment
	// comes out of Poll before Assigned has returned for it.
	Assigned(assignments []Assignment)
	// Revoked announces that partitions move to another member. It returns when
	// the loop has drained them and committed, or when ctx ends; commits are
	// still possible meanwhile. After it has returned the partitions are gone.
	Revoked(ctx context.Context, partitions []TopicPartition)
	// Lost says that partitions are gone already. It returns soon.
	Lost(partitions []TopicPartition)
}

// Batch is records of one partition in offset order, from one assignment.
type Batch struct {
	TopicPartition
	Generation uint64
	Records    []Record
	// HighWatermark and LastStable are the partition's as of this fetch, -1 if
	// not known. Records at LastStable and above wait for a transaction.
	HighWatermark int64
	LastStable    int64
	// NextFetch is where the next fetch begins. It may lie above the last
	// record: markers and compacted offsets are not delivered.
	NextFetch int64
	// Err is the partition's own error; the source goes on trying.
	Err error
}

// Subscription asks for a topic besides the source's own.
type Subscription struct {
	Topic string
}

// Info describes a source. Fields that the source cannot know are zero.
type Info struct {
	System string // "kafka", "memory", ...
	Group  string
	Topics []string // the source's own, without subscriptions
	// Protocol is the group protocol really in use, once joined: "classic
	// (cooperative-sticky)", "consumer (KIP-848)", ...
	Protocol string
	// RebalanceTimeout bounds how long Handler.Revoked may take.
	RebalanceTimeout time.Duration
	// Retention is the longest time for which a record of the source's own
	// topics can be delivered again; 0 not known, negative without end.
	Retention time.Duration
}

// Source delivers records of a group's partitions, at least once.
type Source interface {
	// Info may be called at any time.
	Info() Info
	// Start checks the configuration and topics, joins the group and begins to
	// call handler. It is called once. ctx bounds Start only.
	Start(ctx context.Context, extra []Subscription, handler Handler) error
	// Poll waits for records, an error, or the end of ctx, and returns at most
	// limit records. It is called from one goroutine. While it is being called
	// again and again the member stays in its group. An error that matches
	// ErrFatal ends the loop; after others the loop polls again.
	Poll(ctx context.Context, limit int) ([]Batch, error)
	// Commit commits positions and answers one error per position, in order.
	// One call at a time. An error whose effect is not known may be followed by
	// the same or a higher position.
	Commit(ctx context.Context, offsets []Offset) []error
	// Pause stops fetching the partitions until Resume. What the source had
	// buffered for them is fetched again later: nothing is lost. Pauses end
	// with the assignment.
	Pause(partitions []TopicPartition)
	// Resume ends a pause.
	Resume(partitions []TopicPartition)
	// Close leaves the group (a static member stays its member) and frees
	// everything. It returns when ctx ends at the latest.
	Close(ctx context.Context) error
}

// Reader is implemented by sources that can read a record again. The loop uses
// it to say what differs when one key is used for two payloads.
type Reader interface {
	// Read returns the record at an offset, or an error if it is not there any
	// more. It may be called from any goroutine between Start and Close.
	Read(ctx context.Context, partition TopicPartition, offset int64) (Record, error)
}

// TopicSpec says what a retry or dead-letter topic must be like.
type TopicSpec struct {
	Topic string
	// Like names the source topic whose partition count (as a floor) and size
	// limit it takes.
	Like string
	// Retention is the least time that the topic must keep records; 0: no limit
	// asked.
	Retention time.Duration
	// AppendTime asks for the broker's append time as timestamp.
	AppendTime bool
}

// Producer writes copies and dead letters.
type Producer interface {
	// Ensure checks that the topics exist and are what the specs ask for, and
	// makes missing ones if the producer is configured to. It never makes or
	// changes a source topic. The error says which topic lacks what and how to
	// change it.
	Ensure(ctx context.Context, topics []TopicSpec) error
	// Produce writes records (Topic, Key, Value, Headers; the partition follows
	// from the key bytes) and returns when each was acknowledged by all in-sync
	// replicas, failed, or ctx ended: one error per record, in order, nil only
	// for what was acknowledged. A record whose error is not nil may be in the
	// topic all the same.
	Produce(ctx context.Context, records []Record) []error
	// Close flushes nothing: everything was acknowledged or answered.
	Close(ctx context.Context) error
}

package consumer

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/requeue"
)

// Defaults of Options.
const (
	DefaultConcurrency      = 32
	DefaultBatchSize        = 512
	DefaultMaxCrashes       = 3
	DefaultCommitInterval   = time.Second
	DefaultDrainTimeout     = 30 * time.Second
	DefaultPartitionRecords = 4096
	DefaultPartitionBytes   = 8 << 20
	DefaultRecords          = 16384
	DefaultBytes            = 48 << 20
	DefaultHeldLimit        = time.Minute
	DefaultStuckAfter       = time.Minute
)

// Ordering says which records wait for each other.
type Ordering uint8

const (
	// OrderByKey runs the records of one message key in one partition one after
	// the other. Records without a key have no order. A record that waits in a
	// delay topic is overtaken, see Options.InPlace.
	OrderByKey Ordering = iota
	// OrderByPartition runs the records of a partition one after the other.
	OrderByPartition
	// OrderNone orders nothing.
	OrderNone
)

// MissingID says what becomes of a record without a dedupe id.
type MissingID uint8

const (
	// MissingOffset takes the coordinates of the original record as its id. It
	// guards against redelivery only: a record that was produced twice runs
	// twice. The loop says so at start.
	MissingOffset MissingID = iota
	// MissingPayloadHash takes the hash of the value: two equal payloads under
	// one message key are one effect.
	MissingPayloadHash
	// MissingReject sends the record to the dead letters.
	MissingReject
)

// OutsideWindow says what becomes of a record whose key is absent although the
// group was past its offset before, and which is older than sealed keys are
// kept: after an offset reset, or an old dead letter. Whether its effect was
// applied is not known any more.
type OutsideWindow uint8

const (
	// OutsideWindowPark makes it a dead letter with reason outside_window, in
	// doubt.
	OutsideWindowPark OutsideWindow = iota
	// OutsideWindowRun runs it.
	OutsideWindowRun
)

// Options of a Consumer. The zero value and nil mean the defaults, except that
// a Producer is needed for retries and dead letters.
type Options struct {
	// Producer writes copies and dead letters, see requeue/kafkarequeue. New
	// refuses a nil Producer: without one a record that cannot be processed
	// would stop its partition for ever.
	Producer driver.Producer
	// Schedule says when a temporary error is tried again. The zero value is
	// 1 s, 5 s, 30 s with a tenth of jitter.
	Schedule requeue.Schedule
	// Topics names the retry and dead-letter topics; nil functions mean
	// <topic>.<group>.retry.<delay> and <topic>.<group>.dlq.
	Topics requeue.Names
	// InPlace waits out retries in the lane instead of delay topics: the order
	// by key then holds across retries, and the records behind wait.
	InPlace bool

	// Tenant is the tenant part of the namespace; fence.Nil, the zero value,
	// for none. Fences are never shared across namespaces.
	Tenant fence.Part
	// Scope is the scope of the key: with partition (default), topic, or id.
	Scope fence.Scope
	// DedupeID returns a record's dedupe id; "" means missing. An error or
	// a panic makes the record poison: it goes to the dead letters. Nil means the header
	// idempotency-key, else the CloudEvents headers ce_source and ce_id. It is
	// called from one goroutine at a time and must be a pure function.
	DedupeID func(r Record) (string, error)
	// MissingID is the policy for records whose id is missing.
	MissingID MissingID

	// OutsideWindow is the policy for records whose receipt may have expired.
	OutsideWindow OutsideWindow

	// Order says which records wait for each other; the default is OrderByKey.
	Order Ordering
	// Concurrency is how many effects run at once; 0 is DefaultConcurrency.
	Concurrency int
	// BatchSize is the most records in one request to the fence store and in one
	// poll; 0 is DefaultBatchSize.
	BatchSize int
	// Lease is the time limit of a claim, renewed while its effect runs; 0 is
	// 10 s, 60 s for AtMostOnce. It is the time after which another process
	// takes over from one that died.
	Lease time.Duration
	// MaxCrashes is how many processes one record may take down: the takeover
	// after that many ends it as a dead letter. 0 is DefaultMaxCrashes (3).
	MaxCrashes int
	// HeldLimit is how long a record whose key another process holds is asked
	// for again before a copy of it is moved to the shortest delay topic; 0 is
	// DefaultHeldLimit (1 minute).
	HeldLimit time.Duration

	// PartitionRecords and PartitionBytes bound what is in flight of one
	// partition; a full partition is paused, alone. 0 means
	// DefaultPartitionRecords (4,096) and DefaultPartitionBytes (8 MiB).
	PartitionRecords int
	PartitionBytes   int
	// Records and Bytes bound what is in flight in all; 0 means DefaultRecords
	// (16,384) and DefaultBytes (48 MiB). Bytes counts keys, values and headers,
	// and what the loop itself keeps for each record (about 1.5 kB).
	Records int
	Bytes   int

	// CommitInterval is the longest time between a settled record and its
	// commit; 0 is DefaultCommitInterval (1 s).
	CommitInterval time.Duration
	// DrainTimeout bounds how long a stop or a revoke waits for running
	// effects; 0 is DefaultDrainTimeout (30 s). A revoke waits at most half of
	// the group's rebalance timeout.
	DrainTimeout time.Duration
	// StuckAfter is the age of the oldest unsettled record of a partition from
	// which Healthy names it; 0 is DefaultStuckAfter (1 minute). Copies that wait
	// for their due time do not count.
	StuckAfter time.Duration
	// EndlessTopics accepts a source whose records can be delivered again without
	// end, and a fence retention shorter than the source's: what is delivered
	// again after its receipt is gone runs again.
	EndlessTopics bool
	// AcceptEpoch accepts a fence store whose epoch is not the one that the
	// group committed with: a store that was emptied on purpose. Without it a
	// partition that was committed under another epoch stops the consumer.
	AcceptEpoch bool

	// Logger gets every decision with idempotency_key, decision, effect_id,
	// source_type and source_id: done, duplicate, held and superseded at Debug,
	// requeued, moved and dead at Info, all others at Warn. Nil is slog.Default().
	Logger *slog.Logger
	// Observer sees decisions and gauges, see package metrics; nil sees none.
	Observer Observer
}

// Record is one record as the broker holds it.
type Record = driver.Record

// withDefaults checks o against the source and the effect and fills in what is
// zero. The error names everything that is wrong.
func (o *Options) withDefaults(e effect.Effect, info driver.Info) (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	var wrong *multierror.Error
	say := func(format string, args ...any) {
		wrong = multierror.Append(wrong, fmt.Errorf("consumer.Options."+format, args...))
	}
	if err := e.Validate(); err != nil {
		wrong = multierror.Append(wrong, err)
	}
	if info.Group == "" {
		wrong = multierror.Append(wrong, errors.New("the source has no consumer group: the group is part of every key's namespace"))
	}
	if out.Producer == nil {
		say("Producer is nil: retries and dead letters need one, for Kafka requeue/kafkarequeue.New")
	}
	if err := out.Schedule.Validate(); err != nil {
		wrong = multierror.Append(wrong, err)
	}
	ints := []struct {
		name  string
		value *int
		zero  int
	}{
		{"Concurrency", &out.Concurrency, DefaultConcurrency},
		{"BatchSize", &out.BatchSize, DefaultBatchSize},
		{"MaxCrashes", &out.MaxCrashes, DefaultMaxCrashes},
		{"PartitionRecords", &out.PartitionRecords, DefaultPartitionRecords},
		{"PartitionBytes", &out.PartitionBytes, DefaultPartitionBytes},
		{"Records", &out.Records, DefaultRecords},
		{"Bytes", &out.Bytes, DefaultBytes},
	}
	for _, f := range ints {
		if *f.value < 0 || *f.value > math.MaxInt32 {
			say("%s is %d: it must be positive (0 means %d)", f.name, *f.value, f.zero)
		}
		if *f.value == 0 {
			*f.value = f.zero
		}
	}
	lease := fence.DefaultLease
	if e.Kind() == fencedriver.KindAtMostOnce {
		lease = fence.DefaultAtMostOnceLease
	}
	durations := []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"Lease", &out.Lease, lease},
		{"HeldLimit", &out.HeldLimit, DefaultHeldLimit},
		{"CommitInterval", &out.CommitInterval, DefaultCommitInterval},
		{"DrainTimeout", &out.DrainTimeout, DefaultDrainTimeout},
		{"StuckAfter", &out.StuckAfter, DefaultStuckAfter},
	}
	for _, f := range durations {
		if *f.value < 0 {
			say("%s is %v: it must not be negative (0 means %v)", f.name, *f.value, f.zero)
		}
		if *f.value == 0 {
			*f.value = f.zero
		}
	}
	if out.Lease < fence.MinLease {
		say("Lease is %v: the shortest is %v", out.Lease, fence.MinLease)
	}
	if out.Order > OrderNone {
		say("Order is %d: use OrderByKey, OrderByPartition or OrderNone", out.Order)
	}
	if out.MissingID > MissingReject {
		say("MissingID is %d: use MissingOffset, MissingPayloadHash or MissingReject", out.MissingID)
	}
	if out.OutsideWindow > OutsideWindowRun {
		say("OutsideWindow is %d: use OutsideWindowPark or OutsideWindowRun", out.OutsideWindow)
	}
	if out.Logger == nil {
		out.Logger = slog.Default()
	}
	if out.Observer == nil {
		out.Observer = noObserver{}
	}
	if out.Topics.Group == "" {
		out.Topics.Group = info.Group
	}
	return out, wrong.ErrorOrNil()
}

package redisfence

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence"
)

// DefaultBuckets is the number of buckets of a namespace.
const DefaultBuckets = 16

// maxBuckets: the bucket is made from one byte of the digest.
const maxBuckets = 256

// Options of a Store. The zero value and nil mean the defaults.
type Options struct {
	// Buckets is the number of hash slots that a namespace is spread over: in
	// a cluster a batch costs at most that many scripts. 0 is DefaultBuckets
	// (16), the highest is 256, negative is refused. It is kept in the
	// namespace's marker: another number finds none of the records and is
	// refused when the namespace is opened.
	Buckets int
	// WaitReplicas is the number of replicas that must have a claim before it
	// is answered, and a seal, hand-over, bury or resolution before it is
	// reported as written; 0 is none, negative is refused. What too few confirm
	// in time is an error for its items, and stays written: send it again. With
	// another implementation of the client than the two of NewStore it is
	// refused. Redis elects the replica that has most, but WAIT is no consensus:
	// a failover that does not choose one of those that confirmed still loses.
	WaitReplicas int
	// WaitTimeout is how long the replicas may take; 0 is DefaultWaitTimeout
	// (1 s), negative is refused, and so is what is not below the client's
	// ReadTimeout.
	WaitTimeout time.Duration
	// Fence holds the options of the fence that New returns. NewStore does not
	// look at it.
	Fence *fence.Options
}

// New opens a fence on Redis. It does not contact the server; opening a
// namespace does. It refuses what NewStore and fence.New refuse.
func New(client redis.UniversalClient, opts *Options) (*fence.Fence, error) {
	store, err := NewStore(client, opts)
	if err != nil {
		return nil, err
	}
	var fenceOpts *fence.Options
	if opts != nil {
		fenceOpts = opts.Fence
	}
	f, err := fence.New(store, fenceOpts)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return f, nil
}

// NewStore makes a store on the user's client, which stays open when the store
// is closed. It does not contact the server.
//
// *redis.Client, from NewClient or NewFailoverClient, and *redis.ClusterClient
// are made for; renewals then travel over connections of their own, opened with
// the client's options but without its hooks. Any other implementation gets the
// scripts of one bucket at a time and shares its connections with the renewals.
//
// Refused by name, because the promise would not hold:
//   - ReadOnly, RouteByLatency and RouteRandomly: replicas are behind.
//   - *redis.Ring: when a shard is down its keys move to another one, where no
//     record is found and every effect runs again.
//   - ReadTimeout below zero: a lost reply would be waited for without end.
func NewStore(client redis.UniversalClient, opts *Options) (*Store, error) {
	s := &Store{client: client, renewals: client, buckets: DefaultBuckets, byBucket: true}
	if opts != nil && opts.Buckets != 0 {
		s.buckets = opts.Buckets
	}
	if s.buckets < 1 || s.buckets > maxBuckets {
		return nil, fmt.Errorf("redisfence.Options.Buckets is %d: use 1 to %d, or 0 for %d", s.buckets, maxBuckets, DefaultBuckets)
	}
	if err := s.confirmBy(opts); err != nil {
		return nil, err
	}
	switch c := client.(type) {
	case nil:
		return nil, errors.New("redisfence: the client is nil")
	case *redis.Client:
		if err := s.checkTimeout(c.Options().ReadTimeout); err != nil {
			return nil, err
		}
		s.renewals, s.own, s.byBucket = redis.NewClient(renewalOptions(c.Options())), true, false
	case *redis.ClusterClient:
		o := c.Options()
		if o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
			return nil, errors.New("redisfence: the cluster client reads from replicas (ReadOnly, RouteByLatency or RouteRandomly), which are behind: a sealed key would be run again; leave these options off")
		}
		if err := s.checkTimeout(o.ReadTimeout); err != nil {
			return nil, err
		}
		s.renewals, s.own = redis.NewClusterClient(renewalClusterOptions(o)), true
	case *redis.Ring:
		return nil, errors.New("redisfence: *redis.Ring moves the keys of a shard that is down to another one, where every sealed key would be run again; use redis.NewClient, redis.NewFailoverClient or redis.NewClusterClient")
	default:
		if s.replicas > 0 {
			return nil, fmt.Errorf("redisfence.Options.WaitReplicas needs *redis.Client or *redis.ClusterClient: with a %T nobody knows which connection WAIT travels on", client)
		}
	}
	return s, nil
}

// confirmBy takes what is said about replicas.
func (s *Store) confirmBy(opts *Options) error {
	s.timeout = DefaultWaitTimeout
	if opts == nil {
		return nil
	}
	if opts.WaitReplicas < 0 || opts.WaitTimeout < 0 {
		return fmt.Errorf("redisfence.Options.WaitReplicas is %d and WaitTimeout %v: neither may be negative", opts.WaitReplicas, opts.WaitTimeout)
	}
	s.replicas = opts.WaitReplicas
	if opts.WaitTimeout > 0 {
		s.timeout = opts.WaitTimeout
	}
	return nil
}

// checkTimeout sees the client's ReadTimeout as the client keeps it: none
// stands there as zero or less.
func (s *Store) checkTimeout(read time.Duration) error {
	if read <= 0 {
		return errors.New("redisfence: the client's ReadTimeout is off: a lost reply would be waited for without end; set one, or leave it 0 for the client's default")
	}
	if s.replicas > 0 && s.timeout >= read {
		return fmt.Errorf("redisfence.Options.WaitTimeout is %v and the client's ReadTimeout %v: the client would give up first; make it shorter", s.timeout, read)
	}
	return nil
}

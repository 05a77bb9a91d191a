package kafkasource

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
)

// source is one member of a group.
//
// Lock order: handling before mu; kgo's own locks are taken under mu (pause and
// resume) and never held when kgo calls the source, hooks apart, which take no
// lock here.
type source struct {
	group            string
	topics           []string
	options          Options
	kopts            []kgo.Opt
	rebalanceTimeout time.Duration
	balancer         string

	life context.Context // ends when Close has returned
	end  context.CancelFunc

	client  *kgo.Client // set by Start
	admin   *kadm.Client
	handler driver.Handler

	joined   atomic.Int32 // the request by which the member joined; see protocol.go
	fatal    chan struct{}
	fatalErr error // read after fatal is closed
	fatality sync.Once

	handling sync.Mutex // a call of the handler, one at a time

	mu         sync.Mutex
	holdings   map[driver.TopicPartition]*holding
	known      map[string]*topicFacts
	retention  time.Duration
	generation uint64
	flight     *flight        // the commit on its way
	pending    []driver.Batch // for the next Poll
	awake      chan struct{}  // pending has something new
	started    bool
	unreleased time.Time // since when somebody else holds the instance id
	closing    bool
	closed     bool

	fetched map[driver.TopicPartition]commit // of the offset fetch that is being handled
	polling *polling                         // of the goroutine that polls
}

// holding is one assignment of a partition.
type holding struct {
	driver.TopicPartition
	generation uint64
	topicID    [16]byte
	next       int64 // where the next fetch begins, as far as is known
	paused     bool  // by the loop
	backingOff bool  // after an error
	stuck      error // why it stands still for good
	failures   int   // in a row
	heard      time.Time
	high       int64
	stable     int64
}

// topicFacts is what is known about a topic.
type topicFacts struct {
	id         [16]byte
	partitions int32
	extra      bool // an extra subscription
	// adopt says that the group had no position in the topic when the source
	// started, which had partitions [0, first) then.
	adopt bool
	first int32
	// begun are the partitions that got a first position from this source.
	begun map[int32]struct{}
}

func newSource(group string, topics []string, o Options) *source {
	s := &source{
		group:    group,
		topics:   slices.Clone(topics),
		options:  o,
		fatal:    make(chan struct{}),
		holdings: map[driver.TopicPartition]*holding{},
		known:    map[string]*topicFacts{},
		awake:    make(chan struct{}, 1),
	}
	s.life, s.end = context.WithCancel(context.Background()) //nolint:forbidigo // the client outlives Start; Close ends it
	return s
}

// Info implements [driver.Source].
func (s *source) Info() driver.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return driver.Info{
		System:           "kafka",
		Group:            s.group,
		Topics:           slices.Clone(s.topics),
		Protocol:         s.protocol(),
		RebalanceTimeout: s.rebalanceTimeout,
		Retention:        s.retention,
	}
}

// wake lets Poll look at what is pending.
func (s *source) wake() {
	select {
	case s.awake <- struct{}{}:
	default:
	}
}

// partitionMap is how kgo wants partitions.
func partitionMap(tps []driver.TopicPartition) map[string][]int32 {
	m := make(map[string][]int32, 1)
	for _, tp := range tps {
		m[tp.Topic] = append(m[tp.Topic], tp.Partition)
	}
	return m
}

package memsource

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

// BrokerOptions configures a broker. nil means all defaults.
type BrokerOptions struct {
	// AutoCreate makes a topic that a produce or a source names and that is
	// missing, with this many partitions. Default 0: a missing topic is an
	// error. Negative is refused by a panic.
	AutoCreate int
}

// Broker holds topics and groups. Use [NewBroker].
type Broker struct {
	autoCreate int

	mu      sync.Mutex
	topics  map[string]*topic
	groups  map[string]*group
	sources map[*Source]struct{} // started and not closed
	topicNo int
}

// NewBroker returns a broker without topics.
func NewBroker(opts *BrokerOptions) *Broker {
	o := BrokerOptions{}
	if opts != nil {
		o = *opts
	}
	if o.AutoCreate < 0 {
		panic("memsource: BrokerOptions.AutoCreate is negative: use 0 to refuse missing topics")
	}
	return &Broker{
		autoCreate: o.AutoCreate,
		topics:     map[string]*topic{},
		groups:     map[string]*group{},
		sources:    map[*Source]struct{}{},
	}
}

// TopicOptions describes a topic. nil means all defaults.
type TopicOptions struct {
	// Partitions is how many there are. Default 1; negative is refused.
	Partitions int
	// AppendTime makes the broker's clock the timestamp of every record.
	// Default: the producer's timestamp, or the broker's clock where a record
	// has none.
	AppendTime bool
	// MaxBytes is the largest record, keys, values and headers counted.
	// Default 1,048,576; negative: no limit.
	MaxBytes int
	// Retention is what sources report as the time for which records can be
	// delivered again. Default 0: not known; negative: without end. Nothing is
	// removed by time: see [Broker.Trim].
	Retention time.Duration
}

// CreateTopic makes a topic. The error says that it exists or what is wrong
// with the options.
func (b *Broker) CreateTopic(name string, opts *TopicOptions) error {
	o := TopicOptions{}
	if opts != nil {
		o = *opts
	}
	switch {
	case name == "":
		return errors.New("topic without a name")
	case o.Partitions < 0:
		return fmt.Errorf("topic %s: %d partitions: use 1 or more, 0 means 1", name, o.Partitions)
	case o.Partitions == 0:
		o.Partitions = 1
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.topics[name] != nil {
		return fmt.Errorf("topic %s exists", name)
	}
	b.create(name, o)
	return nil
}

func (b *Broker) create(name string, o TopicOptions) *topic {
	b.topicNo++
	sum := sha256.Sum256([]byte(name + ":" + strconv.Itoa(b.topicNo)))
	t := &topic{name: name, id: [16]byte(sum[:16]), options: o}
	for range o.Partitions {
		t.partitions = append(t.partitions, newPartition())
	}
	b.topics[name] = t
	return t
}

// find returns a topic, made on the spot where the broker does that.
func (b *Broker) find(name string) (*topic, error) {
	if t := b.topics[name]; t != nil {
		return t, nil
	}
	if b.autoCreate == 0 || name == "" {
		return nil, fmt.Errorf("topic %q does not exist: create it first", name)
	}
	return b.create(name, TopicOptions{Partitions: b.autoCreate, MaxBytes: 1 << 20}), nil
}

// partition returns a partition that exists.
func (b *Broker) partition(tp driver.TopicPartition) (*partition, error) {
	t := b.topics[tp.Topic]
	if t == nil {
		return nil, fmt.Errorf("topic %q does not exist: create it first", tp.Topic)
	}
	if tp.Partition < 0 || int(tp.Partition) >= len(t.partitions) {
		return nil, fmt.Errorf("topic %s has no partition %d, it has %d partitions", tp.Topic, tp.Partition, len(t.partitions))
	}
	return t.partitions[tp.Partition], nil
}

// AddPartitions adds n partitions to a topic. Its groups rebalance; the new
// partitions start at the beginning.
func (b *Broker) AddPartitions(name string, n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topics[name]
	if t == nil || n < 1 {
		return fmt.Errorf("cannot add %d partitions to topic %q: it has to exist, and n to be 1 or more", n, name)
	}
	for range n {
		t.partitions = append(t.partitions, newPartition())
	}
	b.balanceAll()
	return nil
}

// Topics returns the names of all topics in order.
func (b *Broker) Topics() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.topics))
}

// Partitions returns how many partitions a topic has, 0 if there is no such
// topic.
func (b *Broker) Partitions(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.topics[name]; t != nil {
		return len(t.partitions)
	}
	return 0
}

// balanceAll lets every group look at its members and partitions again.
func (b *Broker) balanceAll() {
	for _, name := range slices.Sorted(maps.Keys(b.groups)) {
		b.groups[name].balance()
	}
}

// wakeAll lets every source look for records again.
func (b *Broker) wakeAll() {
	for s := range b.sources {
		s.wakeUp()
	}
}

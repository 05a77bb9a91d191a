package kafkarequeue

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/requeue"
)

// producer implements driver.Producer and requeue.Sizer.
type producer struct {
	opts        Options
	log         *slog.Logger
	client      *kgo.Client
	alone       aloneLane
	partitioner kgo.Partitioner
	batchLimit  func(topic string) int32

	closeOnce sync.Once
	closed    chan struct{} // closed when everything is freed

	mu     sync.RWMutex
	limits map[string]int // max.message.bytes of the topics that Ensure accepted
}

var (
	_ driver.Producer = (*producer)(nil)
	_ requeue.Sizer   = (*producer)(nil)
)

// New makes a producer with a franz-go client of its own. kopts say where the
// brokers are and how to speak to them (SeedBrokers, DialTLSConfig, SASL, ...).
// New does not connect. Options that would break the promise are refused by name:
// acks other than all, no idempotency, a transactional id, a partitioner, a
// batch limit, manual flushing, a linger above 100 ms, auto topic creation, and
// whatever consumes.
//
// The producer also implements [requeue.Sizer]. Its Ensure must have accepted a
// topic before Produce writes to it. All methods may be called from any
// goroutine.
func New(opts *Options, kopts ...kgo.Opt) (driver.Producer, error) {
	filled, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &producer{
		opts:        filled,
		log:         filled.Log,
		partitioner: &keyPartitioner{kgo.UniformBytesPartitioner(64<<10, true, true, nil)},
		closed:      make(chan struct{}),
		limits:      map[string]int{},
	}
	p.batchLimit = func(topic string) int32 { return int32(max(minBatch, p.limit(topic))) }
	p.alone.init()
	p.client, err = kgo.NewClient(append(p.defaults(), kopts...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka requeue: %w", err)
	}
	if err := p.refuse(p.client); err != nil {
		p.client.Close()
		return nil, err
	}
	return p, nil
}

const (
	// minBatch is the smallest batch limit that franz-go takes.
	minBatch = 512
	// unknownLimit is the batch limit for a topic that is not known.
	unknownLimit = 1_000_012
	// limitSlack is what franz-go may count on top of a batch's own size.
	limitSlack = 16
)

// defaults are the options that come before the user's.
func (p *producer) defaults() []kgo.Opt {
	return []kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.AllowIdempotentProduceCancellation(),
		kgo.RecordDeliveryTimeout(p.opts.DeliveryTimeout),
		kgo.RecordPartitioner(p.partitioner),
		kgo.ProducerBatchMaxBytesFn(p.batchLimit),
		kgo.ProducerLinger(time.Millisecond),
		kgo.MetadataMinAge(250 * time.Millisecond),
	}
}

// limit returns a topic's max.message.bytes.
func (p *producer) limit(topic string) int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if n := p.limits[topic]; n > 0 {
		return n
	}
	return unknownLimit
}

// MaxBytes returns the largest requeue.Size that the topic surely takes, 0 for
// a topic that Ensure has not accepted. A record that is larger may fit all the
// same if it compresses well: Produce tries, and says driver.ErrTooLarge if not.
func (p *producer) MaxBytes(topic string) int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if n := p.limits[topic]; n > 0 {
		return max(1, n-limitSlack)
	}
	return 0
}

// Close ends the client. Calls of Produce that still run answer with an error.
// It returns when all is freed, or when ctx ends; the rest then goes on in the
// background. A second Close waits for the first.
func (p *producer) Close(ctx context.Context) error {
	p.closeOnce.Do(func() {
		go func() {
			defer close(p.closed)
			p.alone.close()
			p.client.Close()
		}()
	})
	select {
	case <-p.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("kafka requeue: closing goes on in the background: %w", context.Cause(ctx))
	}
}

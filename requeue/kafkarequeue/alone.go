package kafkarequeue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
)

// aloneLane is a second client that has one record in flight at most, so that
// an answer is about that record and no other. It is made when it is first
// needed. Its batches may be as large as a request: the broker decides, with the
// record as compressed.
type aloneLane struct {
	turn chan struct{} // holds one token; whoever has it may send

	mu     sync.Mutex
	client *kgo.Client
	closed bool
}

func (l *aloneLane) init() {
	l.turn = make(chan struct{}, 1)
	l.turn <- struct{}{}
}

// open returns the client, making it if need be.
func (l *aloneLane) open(like *kgo.Client) (*kgo.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, driver.ErrClosed
	}
	if l.client == nil {
		most := like.OptValue(kgo.BrokerMaxWriteBytes).(int32)
		client, err := kgo.NewClient(slices.Concat(like.Opts(), []kgo.Opt{kgo.ProducerBatchMaxBytes(most - most/16), kgo.ProducerLinger(0)})...)
		if err != nil {
			return nil, err
		}
		l.client = client
	}
	return l.client, nil
}

// close answers what is in flight and lets nothing more in.
func (l *aloneLane) close() {
	l.mu.Lock()
	l.closed = true
	client := l.client
	l.mu.Unlock()
	if client != nil {
		client.Close()
	}
}

// produceSingly writes some of the records one after the other.
func (p *producer) produceSingly(ctx context.Context, records []driver.Record, which []int, errs []error) {
	for _, i := range which {
		errs[i] = p.produceAlone(ctx, records[i])
	}
}

// produceAlone writes one record while no other is in flight in its lane. If ctx
// ends first the lane stays taken until the client has answered, so that the
// next record's answer is its own again.
func (p *producer) produceAlone(ctx context.Context, rec driver.Record) error {
	select {
	case <-p.alone.turn:
	case <-ctx.Done():
		return fmt.Errorf("not sent: %w", context.Cause(ctx))
	}
	client, err := p.alone.open(p.client)
	if err != nil {
		p.alone.turn <- struct{}{}
		return err
	}
	answered := make(chan error, 1)
	client.Produce(ctx, toKgo(rec), func(r *kgo.Record, err error) {
		answered <- verdict(r, err)
		p.alone.turn <- struct{}{}
	})
	select {
	case err := <-answered:
		if errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge) {
			return fmt.Errorf("%w: %w", driver.ErrTooLarge, err)
		}
		return err
	case <-ctx.Done():
		return errNoAnswer
	}
}

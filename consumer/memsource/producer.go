package memsource

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/oncefence/oncefence/consumer/driver"
)

// ProducerOptions configures a producer. nil means all defaults.
type ProducerOptions struct {
	// RefuseCreate makes Ensure refuse missing topics. Default: it makes them.
	RefuseCreate bool
	// OnProduce is called for each record before it is written, and may make
	// it fail: an error with Applied is an unknown outcome, the record is in
	// the topic all the same. It may wait. Default: none.
	OnProduce func(ctx context.Context, r driver.Record) Fault
}

// Producer returns a producer that writes to the broker's topics.
func (b *Broker) Producer(opts *ProducerOptions) driver.Producer {
	p := &producer{broker: b}
	if opts != nil {
		p.options = *opts
	}
	return p
}

type producer struct {
	broker  *Broker
	options ProducerOptions
	mu      sync.Mutex
	closed  bool
}

func (p *producer) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Ensure implements [driver.Producer].
func (p *producer) Ensure(ctx context.Context, specs []driver.TopicSpec) error {
	if p.isClosed() {
		return driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.broker.mu.Lock()
	defer p.broker.mu.Unlock()
	var errs []error
	for _, spec := range specs {
		errs = append(errs, p.ensure(spec))
	}
	return errors.Join(errs...)
}

func (p *producer) ensure(spec driver.TopicSpec) error {
	like := p.broker.topics[spec.Like]
	switch {
	case spec.Topic == "" || spec.Topic == spec.Like:
		return fmt.Errorf("topic %q cannot hold copies of topic %q: give it a name of its own", spec.Topic, spec.Like)
	case spec.Like != "" && like == nil:
		return fmt.Errorf("topic %s is to be like topic %s, which does not exist", spec.Topic, spec.Like)
	}
	o := TopicOptions{Partitions: 1, MaxBytes: 1 << 20, Retention: spec.Retention, AppendTime: spec.AppendTime}
	if like != nil {
		o.Partitions, o.MaxBytes = len(like.partitions), like.options.MaxBytes
	}
	t := p.broker.topics[spec.Topic]
	switch {
	case t == nil && p.options.RefuseCreate:
		return fmt.Errorf("topic %s does not exist: create it with %d partitions", spec.Topic, o.Partitions)
	case t == nil:
		p.broker.create(spec.Topic, o)
		return nil
	case len(t.partitions) < o.Partitions:
		return fmt.Errorf("topic %s has %d partitions, topic %s has %d: add partitions", spec.Topic, len(t.partitions), spec.Like, o.Partitions)
	case t.options.MaxBytes > 0 && (o.MaxBytes < 0 || t.options.MaxBytes < o.MaxBytes):
		return fmt.Errorf("topic %s takes records of %d bytes, topic %s of %d: raise its MaxBytes", spec.Topic, t.options.MaxBytes, spec.Like, o.MaxBytes)
	case spec.Retention > 0 && t.options.Retention > 0 && t.options.Retention < spec.Retention:
		return fmt.Errorf("topic %s keeps records for %v, %v are needed: raise its Retention", spec.Topic, t.options.Retention, spec.Retention)
	case spec.AppendTime && !t.options.AppendTime:
		return fmt.Errorf("topic %s has the producer's timestamps, the broker's append time is needed: set AppendTime", spec.Topic)
	}
	return nil
}

// Produce implements [driver.Producer].
func (p *producer) Produce(ctx context.Context, records []driver.Record) []error {
	errs := make([]error, len(records))
	for i, r := range records {
		var fault Fault
		if hook := p.options.OnProduce; hook != nil {
			fault = hook(ctx, r)
		}
		switch {
		case p.isClosed():
			errs[i] = driver.ErrClosed
		case ctx.Err() != nil:
			errs[i] = ctx.Err()
		case fault.Err == nil || fault.Applied:
			_, errs[i] = p.broker.Produce(r)
		}
		if fault.Err != nil {
			errs[i] = fault.Err
		}
	}
	return errs
}

// Close implements [driver.Producer].
func (p *producer) Close(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}

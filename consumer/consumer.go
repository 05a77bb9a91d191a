package consumer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/requeue"
)

// Consumer runs an effect for the records of a source, once for each
// idempotency key.
type Consumer struct {
	source driver.Source
	fence  *fence.Fence
	effect effect.Effect
	opts   Options
	topics *requeue.Topics
	ns     fence.Namespace
	loop   atomic.Pointer[loop]
	ran    atomic.Bool
}

// New checks its arguments and contacts nobody. The error names everything that
// is wrong. The fence may be nil only for effects of kind AtLeastOnce.
func New(source driver.Source, f *fence.Fence, e effect.Effect, opts *Options) (*Consumer, error) {
	if source == nil {
		return nil, errors.New("consumer.New: source is nil")
	}
	info := source.Info()
	o, err := opts.withDefaults(e, info)
	var wrong *multierror.Error
	wrong = multierror.Append(wrong, err)
	fenced := e.Kind() != fencedriver.KindAtLeastOnce
	if fenced && f == nil {
		wrong = multierror.Append(wrong, fmt.Errorf("consumer.New: fence is nil, and effects of kind %s need one", e.Kind()))
	}
	if e.Kind() == fencedriver.KindTransactional && f != nil {
		wrong = multierror.Append(wrong, checkTransactional(f, e))
	}
	if fenced && f != nil && f.Retention() != 0 && o.Lease > f.Retention() {
		wrong = multierror.Append(wrong, fmt.Errorf("consumer.Options.Lease is %v, longer than the fence's retention of %v: a lease is seconds, retention is days", o.Lease, f.Retention()))
	}
	if wrong.ErrorOrNil() != nil {
		return nil, wrong.ErrorOrNil()
	}
	schedule := o.Schedule
	if o.InPlace { // no delay topics
		schedule.Delays = []time.Duration{}
	}
	topics, err := requeue.NewTopics(info.Topics, o.Topics, schedule)
	if err != nil {
		return nil, err
	}
	ns, err := fence.NewNamespace(o.Tenant, info.Group)
	if err != nil {
		return nil, err
	}
	return &Consumer{source: source, fence: f, effect: e, opts: o, topics: topics, ns: ns}, nil
}

// Namespace returns the namespace of the consumer's keys.
func (c *Consumer) Namespace() fence.Namespace { return c.ns }

// Topics returns the group's retry and dead-letter topics.
func (c *Consumer) Topics() *requeue.Topics { return c.topics }

// Run consumes until ctx ends, and then drains: it stops polling, waits for
// running effects for Options.DrainTimeout, releases what never started, seals,
// commits and leaves the group. It returns nil after a clean stop, else
// everything that went wrong in one error. It can be called once.
//
// Run closes the source and the producer. It does not close the fence, which
// others may use.
//
// A crash at any point loses no record and repeats no sealed effect: what was
// not committed is delivered again and meets the record that its claim left.
func (c *Consumer) Run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return errors.New("consumer.Run was called before: make a new Consumer")
	}
	detached := context.WithoutCancel(ctx)
	var wrong *multierror.Error
	l, err := c.prepare(ctx)
	if err != nil {
		err = unlessStopped(ctx, err)
	} else {
		err = c.consume(ctx, l)
	}
	wrong = multierror.Append(wrong, err)
	wrong = multierror.Append(wrong, c.close(detached, l))
	return wrong.ErrorOrNil()
}

// unlessStopped returns the error of a start, nil if it only says that Run was
// told to stop before the start was over: that is a clean stop too.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// prepare opens the fence, checks what can be checked and makes the loop.
func (c *Consumer) prepare(ctx context.Context) (*loop, error) {
	l := &loop{
		opts: c.opts, effect: c.effect, kind: c.effect.Kind(), fenced: c.effect.Kind() != fencedriver.KindAtLeastOnce,
		source: c.source, namespace: c.ns, topics: c.topics,
		inbox: make(chan func(), 256), fetches: make(chan []fetched), over: make(chan struct{}),
		parts: make(map[driver.TopicPartition]*partition), full: make(map[*partition]struct{}),
		doubts: make(map[*item]time.Time), counts: make(map[string]int32), producing: make(map[string]bool),
		ahead: c.opts.Concurrency * c.effect.MaxBatch(), requestTime: fence.DefaultClaimTimeout, calls: context.WithoutCancel(ctx),
	}
	l.lanes = newLanes(c.opts.Order, l.laneAhead())
	if l.fenced {
		space, err := c.fence.Open(ctx, c.ns)
		if err != nil {
			return l, err
		}
		l.space = space
		epoch := space.Epoch()
		l.epochText = metadataPrefix + hex.EncodeToString(epoch[:])
		marker, err := space.Mark(ctx, fencedriver.Marker{})
		if err != nil {
			return l, err
		}
		l.counts = marker.Partitions
		l.limitTransactions(c.fence)
	}
	if l.counts == nil {
		l.counts = make(map[string]int32)
	}
	return l, nil
}

// checkRetention compares how long the fence remembers with what the source can
// deliver again.
func (c *Consumer) checkRetention(info driver.Info) error {
	if c.effect.Kind() == fencedriver.KindAtLeastOnce || c.opts.EndlessTopics {
		return nil
	}
	keeps, budget := c.fence.Retention(), c.opts.Schedule.Budget()
	switch {
	case keeps == 0:
	case info.Retention < 0:
		return fmt.Errorf("a source topic keeps its records without end and the fence forgets a sealed key after %v: what is delivered again later runs again; limit retention.ms, set fence.Options.Endless, or accept it with consumer.Options.EndlessTopics", keeps)
	case info.Retention == 0:
		c.opts.Logger.Warn("oncefence: how long the source keeps its records is not known: the fence's retention cannot be checked against it", "fence_retention", keeps)
	case keeps < info.Retention+2*budget:
		return fmt.Errorf("the fence forgets a sealed key after %v, but the source can deliver a record again for %v and retries take up to %v: set fence.Options.Retention to at least %v, or lower retention.ms of the topic",
			keeps, info.Retention, 2*budget, info.Retention+2*budget)
	}
	return nil
}

func (c *Consumer) consume(ctx context.Context, l *loop) error {
	root, cancelEffects := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelEffects()
	l.info = c.source.Info()
	workers := c.opts.Concurrency
	if l.kind == fencedriver.KindTransactional { // transactions have goroutines of their own
		workers = 0
	}
	l.pool = newPool(root, c.effect, workers, l.input)
	defer l.pool.close()
	loopCtx, stopLoop := context.WithCancel(ctx)
	defer stopLoop()
	go l.run(loopCtx)
	c.loop.Store(l)

	if err := c.start(ctx, l); err != nil {
		stopLoop()
		<-l.over
		return unlessStopped(ctx, err)
	}
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		ident := &identifier{namespace: c.ns, scope: c.opts.Scope, extract: c.opts.DedupeID, missing: c.opts.MissingID, topics: c.topics}
		l.poll(loopCtx, ident)
	}()
	<-l.over
	stopLoop()
	<-polled
	var wrong *multierror.Error
	if l.failure != nil {
		wrong = multierror.Append(wrong, l.failure)
	}
	if err := l.leftError(); err != nil {
		wrong = multierror.Append(wrong, err)
	}
	return wrong.ErrorOrNil()
}

// start checks the topics and joins the group.
func (c *Consumer) start(ctx context.Context, l *loop) error {
	var extra []driver.Subscription
	for _, topic := range c.topics.Subscriptions() {
		extra = append(extra, driver.Subscription{Topic: topic})
	}
	info := c.source.Info()
	if err := c.opts.Producer.Ensure(ctx, c.topics.Specs(info.Retention)); err != nil {
		return fmt.Errorf("retry and dead-letter topics: %w", err)
	}
	if c.opts.DedupeID == nil && c.opts.MissingID == MissingOffset && l.fenced {
		c.opts.Logger.Info("oncefence: a record without a dedupe id is identified by its offset: that guards against redelivery, not against a record that was produced twice")
	}
	if err := c.source.Start(ctx, extra, handler{l}); err != nil {
		return fmt.Errorf("start the source: %w", err)
	}
	info = c.source.Info()
	if err := c.checkRetention(info); err != nil {
		return err
	}
	c.opts.Logger.Info("oncefence: consuming", "system", info.System, "group", info.Group, "topics", info.Topics, "protocol", info.Protocol,
		"kind", l.kind.String(), "namespace", c.ns.Text())
	return nil
}

// closeTimeout bounds leaving the group: a member that is just joining cannot
// leave before the group has dealt with it.
const closeTimeout = 10 * time.Second

// close leaves the group and frees what the run used.
func (c *Consumer) close(ctx context.Context, l *loop) error {
	ctx, cancel := context.WithTimeout(ctx, min(c.opts.DrainTimeout, closeTimeout))
	defer cancel()
	var wrong *multierror.Error
	if err := c.source.Close(ctx); err != nil {
		wrong = multierror.Append(wrong, fmt.Errorf("close the source: %w", err))
	}
	if err := c.opts.Producer.Close(ctx); err != nil {
		wrong = multierror.Append(wrong, fmt.Errorf("close the producer: %w", err))
	}
	if l != nil && l.space != nil {
		if err := l.space.Close(ctx); err != nil {
			wrong = multierror.Append(wrong, fmt.Errorf("close the fence's namespace: %w", err))
		}
	}
	return wrong.ErrorOrNil()
}

func fatal(err error) bool {
	return errors.Is(err, driver.ErrFatal) || errors.Is(err, driver.ErrClosed)
}

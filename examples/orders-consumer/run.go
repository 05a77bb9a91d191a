package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/internal/fenceurl"
	"github.com/oncefence/oncefence/requeue"
)

// stalled is how long a run may go without any progress before it is given up.
const stalled = 90 * time.Second

// patience is how long a server may take to answer at the start.
const patience = 10 * time.Second

// run is one run of the example, as the parent sees it.
type run struct {
	flags
	fenceURL  string
	tempDir   string // holds the fence, if the run made that
	fenceFile string // of bolt:PATH, if the run made it
	broker    *broker
	provider  *provider
	lines     []line
	ns        fence.Namespace
	store     *fence.Fence // open in this process only with mem:
	log       io.Writer
	progress  *progress

	children []*child
	past     counts // of children that have ended
	local    *stats // with mem: the consumers run in this process
	localEnd func() error
	kills    int
}

// execute does the run and returns its result.
func execute(ctx context.Context, f flags, log io.Writer) (result, error) {
	r := &run{flags: f, fenceURL: f.fence, log: log, progress: newProgress(log)}
	defer r.progress.end()
	err := r.prepare(ctx)
	var res result
	if err == nil {
		res, err = r.play(ctx)
	}
	return res, errors.Join(err, r.cleanUp(context.WithoutCancel(ctx)))
}

// prepare reads the input and opens everything but the consumers.
func (r *run) prepare(ctx context.Context) (err error) {
	runID := fmt.Sprintf("%x", time.Now().UnixNano())
	if r.input != "" {
		r.lines, err = readLines(r.input, r.orders)
	} else {
		r.lines, err = generate(r.orders, r.duplicates)
	}
	if err != nil {
		return err
	}
	if err := r.tryFence(ctx); err != nil {
		return err
	}
	if r.broker, err = openBroker(ctx, r.brokers, runID); err != nil {
		return err
	}
	if !embedded(r) && r.broker.cluster != nil { // a lasting fence with a broker that is new each time
		r.broker.group += "-" + runID
	}
	if r.ns, err = fence.NewNamespace(fence.Nil, r.broker.group); err != nil {
		return err
	}
	topics, err := requeue.NewTopics([]string{r.broker.topic}, requeue.Names{Group: r.broker.group}, exampleSchedule)
	if err != nil {
		return err
	}
	r.broker.retries, r.broker.dead = topics.Subscriptions(), topics.DeadLetter(r.broker.topic)
	r.provider, err = startProvider(r.kind, r.faults)
	return err
}

// tryFence opens the fence and closes it again for the consumers: what is wrong
// with it shows before any order is sent.
func (r *run) tryFence(ctx context.Context) (err error) {
	if r.fenceURL == "" {
		if r.fenceURL, r.tempDir, err = embeddedFence(); err != nil {
			return err
		}
	}
	if path, ok := strings.CutPrefix(r.fenceURL, "bolt:"); ok && r.tempDir == "" {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			r.fenceFile = path
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	store, err := fenceurl.Open(ctx, r.fenceURL)
	if err != nil {
		return fmt.Errorf("--fence: %w", err)
	}
	if r.fenceURL == "mem:" {
		r.store = store
		return nil
	}
	return store.Close()
}

// embedded reports whether the fence is new with this run.
func embedded(r *run) bool { return r.tempDir != "" || r.fenceURL == "mem:" }

// play sends the orders, runs and kills the consumers, and works out the result.
func (r *run) play(ctx context.Context) (result, error) {
	r.progress.say("broker %s, fence %s, kind %s", r.brokerName(), fenceurl.Redact(r.fenceURL), r.kind)
	r.progress.say("for a demonstration that ends soon: lease %v, retries after %v, static member ids (a killed consumer is back at once), commits every 100ms", lease, exampleSchedule.Delays)
	if err := send(ctx, r.broker.client, r.broker.topic, r.lines); err != nil {
		return result{}, err
	}
	r.progress.say("%d orders sent", len(r.lines))
	start := time.Now()
	if err := r.startConsumers(ctx); err != nil {
		return result{}, err
	}
	if err := r.watch(ctx); err != nil {
		return result{}, err
	}
	took := time.Since(start)
	if err := r.stopConsumers(); err != nil {
		return result{}, fmt.Errorf("a consumer ended badly: %w", err)
	}
	store := r.store
	if store == nil {
		var err error
		if store, err = fenceurl.Open(ctx, r.fenceURL); err != nil {
			return result{}, err
		}
		defer store.Close()
	}
	t, err := account(ctx, r.broker, store, r.ns, r.lines)
	if err != nil {
		return result{}, err
	}
	res := result{tally: t, counts: r.counts(), Kills: r.kills, Seconds: took.Seconds(), Broker: r.brokerName(), Fence: fenceurl.Redact(r.fenceURL), Kind: r.kind}
	res.RecordsPerSecond = float64(t.Orders) / took.Seconds()
	res.Charges, res.ChargedCents, res.DoubleCharges = r.provider.books()
	return res, nil
}

func (r *run) settings(i int) settings {
	cfg := settings{
		Brokers: r.broker.addrs, Topic: r.broker.topic, Group: r.broker.group, Members: 1, Fence: r.fenceURL, Kind: r.kind,
		Provider: r.provider.URL, Lease: lease, Crashes: r.crashes, Instance: fmt.Sprintf("orders-consumer-%d", i),
	}
	if !ownProcess(r.fenceURL) {
		cfg.Members = r.members
	}
	return cfg
}

func (r *run) startConsumers(ctx context.Context) error {
	if r.store != nil {
		r.local = newStats()
		inner, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- runMembers(inner, r.settings(0), r.store, r.local) }()
		r.localEnd = func() error { stop(); return <-ended }
		return nil
	}
	processes := 1
	if ownProcess(r.fenceURL) {
		processes = r.members
	}
	for i := range processes {
		c, err := startChild(r.settings(i), r.log)
		if err != nil {
			return err
		}
		r.children = append(r.children, c)
	}
	return nil
}

// counts sums what the consumers have streamed.
func (r *run) counts() counts {
	sum := r.past
	add := func(c counts) {
		sum.Deliveries += c.Deliveries
		sum.Requeued += c.Requeued
		sum.InDoubt += c.InDoubt
	}
	for _, c := range r.children {
		add(c.counts())
	}
	if r.local != nil {
		add(r.local.read())
	}
	return sum
}

// watch kills consumers on the way and returns when the group has nothing left
// to do.
func (r *run) watch(ctx context.Context) error {
	var before counts
	var bookedBefore int
	moved := time.Now()
	asked := time.Time{}
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return ctx.Err()
		case <-tick.C:
		}
		now := r.counts()
		booked, _, _ := r.provider.books()
		if now != before || booked != bookedBefore {
			before, bookedBefore, moved = now, booked, time.Now()
		}
		r.progress.show(booked, len(r.lines), now, r.kills)
		if r.kills < r.crashes && booked*(r.crashes+2) >= len(r.lines)*(r.kills+1) {
			if err := r.crash(); err != nil {
				return err
			}
		}
		if err := r.ended(); err != nil {
			return err
		}
		if time.Since(moved) > stalled {
			return fmt.Errorf("no progress for %v: %d of %d orders charged, %+v", stalled, booked, len(r.lines), now)
		}
		if time.Since(asked) < 200*time.Millisecond {
			continue
		}
		asked = time.Now()
		done, err := r.broker.caughtUp(ctx)
		if err != nil {
			return fmt.Errorf("ask the group's positions: %w", err)
		}
		if done && r.kills >= r.crashes {
			return nil
		}
		if done { // the input ended before the last kill was due
			if err := r.crash(); err != nil {
				return err
			}
		}
	}
}

// crash kills one consumer process and starts it again.
func (r *run) crash() error {
	i := r.kills % len(r.children)
	r.children[i].kill()
	last := r.children[i].counts()
	r.past.Deliveries += last.Deliveries
	r.past.Requeued += last.Requeued
	r.past.InDoubt += last.InDoubt
	r.kills++
	r.progress.say("consumer %d killed with SIGKILL (%d of %d), started again", i, r.kills, r.crashes)
	c, err := startChild(r.settings(i), r.log)
	if err != nil {
		return err
	}
	r.children[i] = c
	return nil
}

// ended notices a consumer that ended by itself.
func (r *run) ended() error {
	for i, c := range r.children {
		select {
		case <-c.ended:
			if c.err == nil {
				return fmt.Errorf("consumer %d ended by itself, without an error", i)
			}
			return fmt.Errorf("consumer %d ended by itself: %w", i, c.err)
		default:
		}
	}
	return nil
}

func (r *run) stopConsumers() error {
	var errs []error
	for _, c := range r.children {
		errs = append(errs, c.stop())
	}
	if r.localEnd != nil {
		errs = append(errs, r.localEnd())
		r.localEnd = nil
	}
	return errors.Join(errs...)
}

func (r *run) brokerName() string {
	if r.broker.cluster != nil {
		return "embedded"
	}
	return joinAddrs(r.broker.addrs)
}

// cleanUp ends what still runs and removes what the run made, unless it is to
// be kept.
func (r *run) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var errs []error
	for _, c := range r.children {
		select {
		case <-c.ended:
		default:
			c.kill()
		}
	}
	if r.localEnd != nil {
		errs = append(errs, r.localEnd())
	}
	if r.provider != nil {
		r.provider.Close()
	}
	if r.store != nil {
		errs = append(errs, r.store.Close())
	}
	if r.broker != nil {
		errs = append(errs, r.broker.Close(ctx, r.keep))
	}
	if !r.keep {
		errs = append(errs, removeFence(ctx, r))
	} else if !r.ns.IsZero() {
		r.progress.say("kept: fence %s, namespace %s", fenceurl.Redact(r.fenceURL), r.ns.Text())
	}
	return errors.Join(errs...)
}

func removeFence(ctx context.Context, r *run) error {
	if r.tempDir != "" {
		return os.RemoveAll(r.tempDir)
	}
	if r.fenceFile != "" {
		if err := os.Remove(r.fenceFile); !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if ownProcess(r.fenceURL) && !r.ns.IsZero() {
		return removeNamespace(ctx, r.fenceURL, r.ns.Text())
	}
	return nil
}

// Package member is a consumer in a process of its own, as crash tests run it:
// the process itself and the handle that its parent has on it.
package member

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/kafkasource"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/internal/fenceurl"
	"github.com/oncefence/oncefence/requeue"
	"github.com/oncefence/oncefence/requeue/kafkarequeue"
)

// childEnv holds a member's settings; its presence makes a program one.
const childEnv = "ONCEFENCE_MEMBER"

// Settings is what a member is told by its parent.
type Settings struct {
	Brokers  []string
	Topic    string
	Group    string
	Instance string // static member id; "" for a dynamic member
	Fence    string // URL
	Kind     string
	Sink     string // URL of the ledger
	Lease    time.Duration
	Delays   []time.Duration
	Settled  time.Duration // of a probed sink
	Session  time.Duration // of the group
	// MaxCrashes as consumer.Options; 0 is its default.
	MaxCrashes int
	NextGen    bool // KIP-848
	InPlace    bool
	// AcceptEpoch as consumer.Options.
	AcceptEpoch bool
	Level       slog.Level // of the log on standard error
}

// Main runs the member and ends the process if this program was started as one;
// else it returns at once. Call it first in main.
func Main() {
	raw, child := os.LookupEnv(childEnv)
	if !child {
		return
	}
	if err := run(raw); err != nil {
		fmt.Fprintln(os.Stderr, "member:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run is the process: one consumer, and more when its parent says join. It ends
// cleanly when the parent says stop, and at once when the parent is gone.
func run(raw string) error {
	var cfg Settings
	if err := json.Unmarshal([]byte(raw), &cfg); err != nil {
		return fmt.Errorf("%s: %w", childEnv, err)
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: cfg.Level})))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	words := make(chan string)
	go listen(words)
	store, err := fenceurl.Open(ctx, cfg.Fence)
	if err != nil {
		return err
	}
	events := newEvents(os.Stdout)
	var running sync.WaitGroup
	ended := make(chan error, 16)
	consumeNow := func(n int) {
		member := cfg
		if n > 0 && cfg.Instance != "" {
			member.Instance = fmt.Sprintf("%s-%d", cfg.Instance, n)
		}
		running.Go(func() { ended <- consume(ctx, member, store, events) })
	}
	consumeNow(0)
	var errs []error
	for members := 1; ctx.Err() == nil; {
		select {
		case word := <-words:
			switch word {
			case "join\n":
				consumeNow(members)
				members++
			case "stop\n":
				stop()
			case "health\n":
				for _, c := range health.all() {
					fmt.Fprintf(os.Stderr, "health: %v; ready: %v\n", c.Healthy(), c.Ready())
				}
			default:
				os.Exit(3) // the parent has died
			}
		case err := <-ended:
			errs = append(errs, err)
			stop()
		}
	}
	running.Wait()
	close(ended)
	for err := range ended {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, store.Close())...)
}

func listen(words chan<- string) {
	for in := bufio.NewReader(os.Stdin); ; {
		word, err := in.ReadString('\n')
		words <- word
		if err != nil {
			return
		}
	}
}

// consume is one member until ctx ends.
func consume(ctx context.Context, cfg Settings, store *fence.Fence, events *events) error {
	run, err := newEffect(cfg)
	if err != nil {
		return err
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(cfg.Brokers...), kgo.FetchMaxWait(50 * time.Millisecond), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.SessionTimeout(cfg.Session), kgo.HeartbeatInterval(100 * time.Millisecond),
	}
	source, err := kafkasource.New(cfg.Group, []string{cfg.Topic}, &kafkasource.Options{InstanceID: cfg.Instance, NextGenProtocol: cfg.NextGen}, opts...)
	if err != nil {
		return err
	}
	producer, err := kafkarequeue.New(nil, kgo.SeedBrokers(cfg.Brokers...))
	if err != nil {
		return err
	}
	c, err := consumer.New(&told{Source: source, events: events}, store, run, &consumer.Options{
		Producer: producer, Schedule: requeue.Schedule{Delays: cfg.Delays}, DedupeID: orderID, MissingID: consumer.MissingReject,
		Scope: fence.ScopeID, Concurrency: 8, BatchSize: 16, Lease: cfg.Lease, MaxCrashes: cfg.MaxCrashes, InPlace: cfg.InPlace,
		CommitInterval: 20 * time.Millisecond, DrainTimeout: 5 * time.Second, AcceptEpoch: cfg.AcceptEpoch, Observer: events,
	})
	if err != nil {
		return err
	}
	health.add(c)
	return c.Run(ctx)
}

// consumers are those of this process, to be asked how they are.
type consumers struct {
	mu   sync.Mutex
	list []*consumer.Consumer
}

var health consumers

func (h *consumers) add(c *consumer.Consumer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, c)
}

func (h *consumers) all() []*consumer.Consumer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// orderID is the dedupe id. What does not decode is poison.
func orderID(r consumer.Record) (string, error) {
	var o Order
	if err := json.Unmarshal(r.Value, &o); err != nil {
		return "", fmt.Errorf("not an order: %w", err)
	}
	return o.ID, nil
}

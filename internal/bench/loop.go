package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
)

var errUnexpected = errors.New("a benchmark without errors made a copy or a dead letter")

// watcher ends a run when all records are sealed, and notes how long each took
// since it was handed out.
type watcher struct {
	want  int64
	done  atomic.Int64
	other atomic.Int64 // decisions that must not be
	end   context.CancelFunc
	ended time.Time

	handed []time.Time // by number, only when latency is measured
	took   []time.Duration
}

// Delivered implements consumer.Observer.
func (w *watcher) Delivered(int) {}

// Ran implements consumer.Observer.
func (w *watcher) Ran(string, string, time.Duration) {}

// Gauges implements consumer.Observer.
func (w *watcher) Gauges(consumer.Gauges) {}

// Committed implements consumer.Observer.
func (w *watcher) Committed(int, int) {}

// Decided implements consumer.Observer.
func (w *watcher) Decided(d consumer.Decision) {
	switch d.Decision {
	case consumer.DecisionNew:
		return
	case consumer.DecisionDone:
	default:
		w.other.Add(1)
	}
	if w.handed != nil {
		w.took = append(w.took, time.Since(w.handed[d.OriginOffset]))
	}
	if w.done.Add(1) == w.want {
		w.ended = time.Now()
		w.end()
	}
}

// loopRun is what one run of the loop showed.
type loopRun struct {
	perSecond float64
	allocs    float64 // per record
	took      []time.Duration
}

// runLoop runs the whole loop over generated records with an effect that does
// nothing.
func runLoop(ctx context.Context, f *fence.Fence, group string, records int, every time.Duration, opts Options) (loopRun, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	src := newSource(group, records, opts.Partitions, every)
	w := &watcher{want: int64(records), end: cancel}
	if every > 0 {
		w.handed = make([]time.Time, records)
		src.out = func(n int, at time.Time) { w.handed[n] = at }
	}
	nothing := func(context.Context, effect.Input) (effect.Receipt, error) { return effect.Receipt{}, nil }
	c, err := consumer.New(src, f, effect.Idempotent(nothing, effect.IdempotentOptions{Remembers: effect.Forever}), &consumer.Options{
		Producer: nowhere{}, Observer: w, BatchSize: opts.Batch, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return loopRun{}, err
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	err = c.Run(ctx)
	runtime.ReadMemStats(&after)
	switch {
	case err != nil:
		return loopRun{}, err
	case w.done.Load() < int64(records):
		return loopRun{}, fmt.Errorf("only %d of %d records were sealed: %w", w.done.Load(), records, context.Cause(ctx))
	case w.other.Load() > 0:
		return loopRun{}, fmt.Errorf("%d decisions were neither new nor done: is the key space %q in use?", w.other.Load(), group)
	}
	return loopRun{
		perSecond: float64(records) / w.ended.Sub(start).Seconds(), took: w.took,
		allocs: float64(after.Mallocs-before.Mallocs) / float64(records),
	}, nil
}

func median(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	return sorted[len(sorted)/2]
}

func percentile(took []time.Duration, p float64) float64 {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return float64(sorted[int(p*float64(len(sorted)-1))].Microseconds()) / 1000
}

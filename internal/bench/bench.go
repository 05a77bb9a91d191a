package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oncefence/oncefence/fence"
)

// Options of Run. Zero means the default.
type Options struct {
	Records    int   // in all rounds together; 200,000
	Rounds     int   // 5
	Batch      int   // 512
	Partitions int32 // 4
	// Paced is how many records are sent at 100 a second to measure latency;
	// 300. Negative: none.
	Paced int
}

func (o Options) withDefaults() Options {
	for _, f := range []struct {
		value *int
		zero  int
	}{{&o.Records, 200_000}, {&o.Rounds, 5}, {&o.Batch, 512}, {&o.Paced, 300}} {
		if *f.value == 0 {
			*f.value = f.zero
		}
	}
	if o.Partitions == 0 {
		o.Partitions = 4
	}
	o.Rounds = max(1, min(o.Rounds, o.Records/1000))
	return o
}

// Result is what a run showed: medians over the rounds.
type Result struct {
	Fence               string  `json:"fence"`
	Records             int     `json:"records"`
	Rounds              int     `json:"rounds"`
	FencedPerSecond     float64 `json:"fenced_per_second"`
	FloorPerSecond      float64 `json:"floor_per_second"`
	NaivePerSecond      float64 `json:"naive_per_second"`
	RatioFloor          float64 `json:"ratio_floor"`
	RatioNaive          float64 `json:"ratio_naive"`
	P50                 float64 `json:"p50_ms"`
	P99                 float64 `json:"p99_ms"`
	AllocsPerRecord     float64 `json:"allocs_per_record"`
	StoreBytesPerRecord float64 `json:"store_bytes_per_record"`
}

// target is a store under test.
type target interface {
	// open returns the fence that the loop uses.
	open(ctx context.Context) (*fence.Fence, error)
	// floor claims and seals records in batches, by hand, in the cheapest way
	// that the store offers.
	floor(ctx context.Context, space string, records, batch int) error
	// naive does it one record at a time.
	naive(ctx context.Context, space string, records int) error
	// size is how many bytes the store uses now.
	size(ctx context.Context) (int64, error)
	// clean removes everything that was made.
	clean(ctx context.Context) error
}

// Known lists the fence URLs that can be measured.
const Known = "redis://HOST:PORT/DB, rediss://..., bolt:PATH"

// Run measures the store at a fence URL: in each round the loop, the floor and
// the naive recipe, one after the other. It works in a key space of its own and
// removes it, also when it fails.
func Run(ctx context.Context, url string, opts Options, say func(format string, args ...any)) (res Result, err error) {
	opts = opts.withDefaults()
	if opts.Records < 1000 {
		return res, fmt.Errorf("%d records are too few to measure: at least 1000", opts.Records)
	}
	space := fmt.Sprintf("bench-%x", time.Now().UnixNano())
	t, err := newTarget(ctx, url, space)
	if err != nil {
		return res, err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, t.clean(end))
	}()
	f, err := t.open(ctx)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return measure(ctx, t, f, space, opts, say)
}

func newTarget(ctx context.Context, url, space string) (target, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "redis", "rediss":
		return newRedisTarget(ctx, url, space)
	case "bolt":
		return newBoltTarget(rest)
	}
	return nil, fmt.Errorf("cannot measure %q: known are %s", scheme, Known)
}

func measure(ctx context.Context, t target, f *fence.Fence, space string, opts Options, say func(string, ...any)) (Result, error) {
	res := Result{Records: opts.Records, Rounds: opts.Rounds}
	each := opts.Records / opts.Rounds
	one := max(each/40, 200)
	var fenced, floor, naive, allocs []float64
	if _, err := runLoop(ctx, f, space+"-warm", 1000, 0, opts); err != nil {
		return res, err
	}
	for round := range opts.Rounds {
		before, err := t.size(ctx)
		if err != nil {
			return res, err
		}
		run, err := runLoop(ctx, f, fmt.Sprintf("%s-%d", space, round), each, 0, opts)
		if err != nil {
			return res, err
		}
		after, err := t.size(ctx)
		if err != nil {
			return res, err
		}
		floored, err := timed(each, func() error { return t.floor(ctx, fmt.Sprintf("%s:floor:%d", space, round), each, opts.Batch) })
		if err != nil {
			return res, err
		}
		recipe, err := timed(one, func() error { return t.naive(ctx, fmt.Sprintf("%s:naive:%d", space, round), one) })
		if err != nil {
			return res, err
		}
		fenced, floor, naive, allocs = append(fenced, run.perSecond), append(floor, floored), append(naive, recipe), append(allocs, run.allocs)
		res.StoreBytesPerRecord = float64(after-before) / float64(each)
		say("round %d of %d: loop %.0f/s, by hand in batches %.0f/s, one at a time %.0f/s", round+1, opts.Rounds, run.perSecond, floored, recipe)
	}
	if opts.Paced > 0 {
		paced, err := runLoop(ctx, f, space+"-paced", opts.Paced, 10*time.Millisecond, opts)
		if err != nil {
			return res, err
		}
		res.P50, res.P99 = percentile(paced.took, 0.5), percentile(paced.took, 0.99)
	}
	res.FencedPerSecond, res.FloorPerSecond, res.NaivePerSecond, res.AllocsPerRecord = median(fenced), median(floor), median(naive), median(allocs)
	res.RatioFloor, res.RatioNaive = medianRatio(fenced, floor), medianRatio(fenced, naive)
	return res, nil
}

// medianRatio is the median of the ratios within the rounds: what else the
// machine did then weighs on both.
func medianRatio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios)
}

func timed(records int, f func() error) (perSecond float64, err error) {
	start := time.Now()
	err = f()
	return float64(records) / time.Since(start).Seconds(), err
}

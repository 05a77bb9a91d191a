package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/oncefence/oncefence/test/sweep/account"
)

const quit = syscall.SIGQUIT

// Options of a sweep.
type Options struct {
	// Program is a member built with fault points, see member.Build.
	Program string
	// Redis is the URL of a Redis; "" leaves that store out.
	Redis string
	// Seed decides lines, points and counts.
	Seed uint64
	// Kills is how many are wanted at least; 0 is each point once for each
	// combo. Negative is refused.
	Kills int
	// Parallel is how many chains run at once; 0 is 4. Negative is refused.
	Parallel int
	// Combos restricts the sweep; nil is all.
	Combos []Combo
	// Progress gets a line for each chain; nil for none.
	Progress io.Writer
}

// Result is what a chain, or several of one combo, came to.
type Result struct {
	Kills  int
	Points map[string]int // kills by point
	Missed map[string]int // rounds in which the point was not reached
	Tally  account.Tally
	// From a holder's death until the next process held what it held, and until
	// the outcome. The start of that process is part of it.
	TakenOver, Resolved []time.Duration
}

func newResult() Result { return Result{Points: make(map[string]int), Missed: make(map[string]int)} }

func (r *Result) add(o Result) {
	r.Kills += o.Kills
	for point, n := range o.Points {
		r.Points[point] += n
	}
	for point, n := range o.Missed {
		r.Missed[point] += n
	}
	r.Tally.Add(o.Tally)
	r.Resolved = append(r.Resolved, o.Resolved...)
	r.TakenOver = append(r.TakenOver, o.TakenOver...)
}

// Unreached returns the points of the combo at which nothing was killed.
func (r Result) Unreached(c Combo) (points []string) {
	for _, point := range c.Points() {
		if r.Points[point] == 0 {
			points = append(points, point)
		}
	}
	return points
}

// Run sweeps. The error tells what could not be done, and names the chain's seed;
// what was lost or applied twice stands in the results.
func Run(ctx context.Context, o Options) (map[Combo]Result, error) {
	if o.Kills < 0 || o.Parallel < 0 {
		return nil, fmt.Errorf("sweep: Kills is %d, Parallel %d: neither may be negative", o.Kills, o.Parallel)
	}
	if o.Parallel == 0 {
		o.Parallel = 4
	}
	stores := []string{"bolt"}
	if o.Redis != "" {
		stores = append(stores, "redis")
	}
	combos := o.Combos
	if combos == nil {
		combos = Combos(stores...)
	}
	var (
		mu      sync.Mutex
		next    int
		results = make(map[Combo]Result)
		kills   int
		errs    []error
		wg      sync.WaitGroup
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(errs) > 0 || (next >= len(combos) && kills >= o.Kills) {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range o.Parallel {
		wg.Go(func() {
			for i, more := take(); more; i, more = take() {
				combo, seed := combos[i%len(combos)], o.Seed+uint64(i)
				began := time.Now()
				res, err := runChain(ctx, o, combo, seed)
				mu.Lock()
				if err != nil {
					errs = append(errs, fmt.Errorf("%s on %s, seed %d: %w", combo.Kind, combo.Store, seed, err))
				}
				sum, known := results[combo]
				if !known {
					sum = newResult()
				}
				sum.add(res)
				results[combo] = sum
				kills += res.Kills
				if o.Progress != nil {
					fmt.Fprintf(o.Progress, "%-13s %-5s seed %d: %d kills, %d lines, %d lost, %d twice, %.1f s (%d kills so far)\n",
						combo.Kind, combo.Store, seed, res.Kills, res.Tally.Lines, res.Tally.Lost, res.Tally.Twice, time.Since(began).Seconds(), kills)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

// runChain plays one chain through all points of its combo.
func runChain(ctx context.Context, o Options, combo Combo, seed uint64) (res Result, err error) {
	c, err := openChain(ctx, o, combo, seed)
	if c == nil {
		return newResult(), err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err != nil {
		return c.res, err
	}
	for _, s := range combo.plan(rand.New(rand.NewPCG(seed, 2))) { //nolint:gosec // replayed by its seed
		for tries := 0; ; tries++ {
			killed, err := c.fire(ctx, s)
			if err != nil {
				return c.res, fmt.Errorf("killing at %s:%d: %w\n%s", s.point, s.nth, err, tail(c.log.Bytes()))
			}
			if killed {
				c.res.Points[s.point]++
				break
			}
			c.res.Missed[s.point]++
			if tries == 3 {
				break
			}
			s.nth = 1
		}
	}
	if err := c.finish(ctx); err != nil {
		return c.res, fmt.Errorf("catching up: %w\n%s", err, tail(c.log.Bytes()))
	}
	return c.res, nil
}

func tail(log []byte) []byte { return log[max(0, len(log)-20000):] }

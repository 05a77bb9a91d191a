// Command cmd is the long form of the crash sweep, see package sweep.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/oncefence/oncefence/test/servers"
	"github.com/oncefence/oncefence/test/sweep"
	"github.com/oncefence/oncefence/test/sweep/member"
)

func main() {
	member.Main()
	kills := flag.Int("kills", 1000, "how many kills at least")
	seed := flag.Uint64("seed", 0, "seed of an earlier sweep; 0: a new one, which is printed")
	parallel := flag.Int("parallel", 4, "how many chains run at once")
	kind := flag.String("kind", "", "only this kind of effect")
	store := flag.String("store", "", "only this store, with -kind: bolt, redis or none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *seed == 0 {
		*seed = uint64(rand.Uint32())
	}
	var only []sweep.Combo
	if *kind != "" {
		only = []sweep.Combo{{Kind: *kind, Store: *store}}
	}
	if err := run(ctx, *seed, *kills, *parallel, only); err != nil {
		fmt.Fprintln(os.Stderr, "sweep: FAILED:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, seed uint64, kills, parallel int, only []sweep.Combo) error {
	dir, err := os.MkdirTemp("", "sweep-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := member.Build(ctx, dir, "github.com/oncefence/oncefence/test/sweep/cmd")
	if err != nil {
		return err
	}
	redis, err := servers.StartRedis(ctx, nil)
	url := ""
	switch {
	case err == nil:
		url = redis.URL()
		defer redis.Close()
	case errors.Is(err, servers.ErrMissing):
		fmt.Fprintln(os.Stderr, "sweep: WITHOUT REDIS:", err)
	default:
		return err
	}
	fmt.Printf("seed %d\n", seed)
	began := time.Now()
	results, err := sweep.Run(ctx, sweep.Options{Program: program, Redis: url, Seed: seed, Kills: kills, Parallel: parallel, Combos: only, Progress: os.Stderr})
	fmt.Print(sweep.Table(results))
	fmt.Printf("%.0f s\n", time.Since(began).Seconds())
	return errors.Join(err, sweep.Verdict(results))
}

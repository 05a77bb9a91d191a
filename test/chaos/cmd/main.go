// Command cmd is the long form of the chaos run, see package chaos.
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

	"github.com/oncefence/oncefence/test/chaos"
	"github.com/oncefence/oncefence/test/sweep/member"
)

func main() {
	member.Main()
	seed := flag.Uint64("seed", 0, "seed of an earlier run; 0: a new one, which is printed")
	calm := flag.Duration("calm", time.Minute, "how long members are only killed, to measure takeovers")
	storm := flag.Duration("storm", 6*time.Minute, "how long everything happens")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *seed == 0 {
		*seed = uint64(rand.Uint32())
	}
	if err := run(ctx, *seed, *calm, *storm); err != nil {
		fmt.Fprintln(os.Stderr, "chaos: FAILED:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, seed uint64, calm, storm time.Duration) error {
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := member.Build(ctx, dir, "github.com/oncefence/oncefence/test/chaos/cmd")
	if err != nil {
		return err
	}
	fmt.Printf("seed %d\n", seed)
	began := time.Now()
	report, err := chaos.Run(ctx, chaos.Options{Program: program, Seed: seed, Calm: calm, Storm: storm, Progress: os.Stderr})
	fmt.Print(report.Table())
	for _, wait := range []int{0, 1} {
		f, failed := chaos.MeasureFailover(ctx, wait, 2*time.Second)
		err = errors.Join(err, failed)
		fmt.Printf("failover of redis, WaitReplicas %d: %d seals answered, %d of them lost\n", wait, f.Sealed, f.Lost)
		if wait > 0 && f.Lost > 0 {
			err = errors.Join(err, fmt.Errorf("a failover lost %d confirmed seals", f.Lost))
		}
	}
	fmt.Printf("%.0f s\n", time.Since(began).Seconds())
	return errors.Join(err, report.Verdict())
}

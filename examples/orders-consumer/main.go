// Command orders-consumer charges orders exactly once while its consumers are
// killed.
//
// Without flags it needs no server: it starts an embedded Kafka-protocol broker
// and a payment provider, sends 12,000 order lines (10,000 orders, 20 % of them
// twice), runs the consumer in a child process that it kills three times, and
// then accounts for each line. It exits with status 0 only if nothing was
// charged twice and nothing was lost, 1 if that failed, 2 for wrong flags.
//
// consumer.go is the part to copy; what else is here only surrounds it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// Every decision is logged, most of them because of the faults made here:
	// the example shows what is left.
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if raw, child := os.LookupEnv(childEnv); child {
		if err := runChild(raw); err != nil {
			fmt.Fprintln(os.Stderr, "consumer:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(parent(os.Args[1:]))
}

func parent(args []string) int {
	f, err := parseFlags(args, os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "orders-consumer:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var log io.Writer = os.Stdout
	if f.json {
		log = os.Stderr
	}
	quietRedis()
	res, err := execute(ctx, f, log)
	if res.Orders > 0 { // the run came to its end, whatever cleaning up met
		show := res.printTable
		if f.json {
			show = res.printJSON
		}
		err = errors.Join(res.verdict(), show(os.Stdout), err)
	}
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "orders-consumer: interrupted:", err)
	default:
		fmt.Fprintln(os.Stderr, "orders-consumer: FAILED:", err)
	}
	return 1
}

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
	"os"
	"os/signal"
	"syscall"
)

func main() {
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
	f, err := parseFlags(args, os.Stderr)
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
	res, err := execute(ctx, f, log)
	if err != nil {
		fmt.Fprintln(os.Stderr, "orders-consumer:", err)
		return 1
	}
	if f.json {
		err = res.printJSON(os.Stdout)
	} else {
		err = res.printTable(os.Stdout)
	}
	if err = errors.Join(err, res.verdict()); err != nil {
		fmt.Fprintln(os.Stderr, "orders-consumer: FAILED:", err)
		return 1
	}
	return 0
}

// Command ordersreal runs examples/orders-consumer on a real Kafka and a real
// Redis, once for each kind of effect, with three kills and faults, and checks
// what it reports: every line accounted for, none lost, none charged twice.
//
// The orders come from the file named by INPUT, else from DefaultInput where
// that exists, else they are generated. The servers are those that package
// servers finds or starts.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/oncefence/oncefence/test/servers"
)

// DefaultInput is a file of real orders beside the checkout.
const DefaultInput = "../shared/data/orders.ndjson"

// limit is how long one run may take.
const limit = 5 * time.Minute

type report struct {
	Orders        int     `json:"orders"`
	Applied       int     `json:"applied"`
	Duplicates    int     `json:"duplicates"`
	Conflicts     int     `json:"conflicts"`
	DeadLetters   int     `json:"dead_letters"`
	Lost          int     `json:"lost"`
	InDoubt       int     `json:"in_doubt"`
	Requeued      int     `json:"requeued"`
	Charges       int     `json:"charges"`
	DoubleCharges int     `json:"double_charges"`
	Seconds       float64 `json:"seconds"`
	Broker        string  `json:"broker"`
	Fence         string  `json:"fence"`
}

func (r report) check(kind string) error {
	var wrong []error
	if sum := r.Applied + r.Duplicates + r.Conflicts + r.DeadLetters + r.Lost; sum != r.Orders || r.Orders == 0 {
		wrong = append(wrong, fmt.Errorf("%d lines sent, %d accounted for", r.Orders, sum))
	}
	if r.Lost != 0 {
		wrong = append(wrong, fmt.Errorf("%d lines lost", r.Lost))
	}
	if r.DoubleCharges != 0 {
		wrong = append(wrong, fmt.Errorf("%d double charges", r.DoubleCharges))
	}
	if r.Charges < r.Applied {
		wrong = append(wrong, fmt.Errorf("%d lines applied, %d charges in the ledger", r.Applied, r.Charges))
	}
	if r.Broker == "embedded" || !strings.HasPrefix(r.Fence, "redis") {
		wrong = append(wrong, fmt.Errorf("ran on broker %s and fence %s, not on real servers", r.Broker, r.Fence))
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("kind %s: %w", kind, err)
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ordersreal: FAILED:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	program, err := build(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(program))
	kafka, err := servers.StartKafka(ctx, nil)
	if err != nil {
		return err
	}
	defer kafka.Close()
	redis, err := servers.StartRedis(ctx, nil)
	if err != nil {
		return err
	}
	defer redis.Close()

	args := []string{"--json", "--brokers", strings.Join(kafka.Brokers(), ","), "--fence", redis.URL(), "--crashes", "3", "--faults", "5"}
	if input := input(); input != "" {
		args = append(args, "--input", input)
	} else {
		fmt.Println("no file of real orders: the orders are generated")
		args = append(args, "--orders", "2000")
	}
	var wrong []error
	for _, kind := range []string{"idempotent", "probed", "at-most-once"} {
		for _, members := range []string{"1", "2"} {
			if members == "2" && kind != "idempotent" {
				continue
			}
			r, err := once(ctx, program, append(args, "--kind", kind, "--members", members))
			if err == nil {
				err = r.check(kind)
			}
			if err != nil {
				wrong = append(wrong, err)
				fmt.Printf("%-13s %s members: FAILED: %v\n", kind, members, err)
				continue
			}
			fmt.Printf("%-13s %s members: %d lines = %d applied + %d duplicates + %d conflicts + %d dead letters + %d lost; %d charges, %d double; %d in doubt, %d requeued; %.1f s\n",
				kind, members, r.Orders, r.Applied, r.Duplicates, r.Conflicts, r.DeadLetters, r.Lost, r.Charges, r.DoubleCharges, r.InDoubt, r.Requeued, r.Seconds)
		}
	}
	return errors.Join(wrong...)
}

func build(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "ordersreal-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "orders-consumer")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/oncefence/oncefence/examples/orders-consumer")
	cmd.Stderr = os.Stderr
	return program, cmd.Run()
}

func input() string {
	if named := os.Getenv("INPUT"); named != "" {
		return named
	}
	if _, err := os.Stat(DefaultInput); err == nil {
		return DefaultInput
	}
	return ""
}

func once(ctx context.Context, program string, args []string) (report, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &log
	runErr := cmd.Run()
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("orders-consumer %s: %w\n%s", strings.Join(args, " "), errors.Join(runErr, err), log.String())
	}
	if runErr != nil {
		return r, fmt.Errorf("orders-consumer %s: %w\n%s", strings.Join(args, " "), runErr, log.String())
	}
	return r, nil
}

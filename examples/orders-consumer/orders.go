package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// line is one line of the input and where it went.
type line struct {
	value     []byte
	orderID   string // "" if it does not decode
	partition int32
	offset    int64
}

// generate makes orders of which percent are sent twice, the second time
// somewhere behind the first. About one in fifty has no customer.
func generate(orders int, percent float64) ([]line, error) {
	random := rand.New(rand.NewPCG(7, 11))
	lines := make([]line, 0, orders)
	start := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for i := range orders {
		customer := fmt.Sprint(10000 + random.IntN(500))
		if random.IntN(50) == 0 {
			customer = ""
		}
		value, err := json.Marshal(map[string]any{
			"order_id": fmt.Sprintf("A%06d", i+1), "customer_id": customer, "description": "GENERATED ORDER",
			"quantity": 1 + random.IntN(12), "amount_cents": 100 + random.IntN(20000), "currency": "EUR", "country": "Utopia",
			"placed_at": start.Add(time.Duration(i) * time.Second).Format(time.RFC3339),
		})
		if err != nil {
			return nil, err
		}
		lines = append(lines, line{value: value})
	}
	twice := random.Perm(orders)[:int(float64(orders)*percent/100)]
	for _, i := range twice {
		lines = append(lines, lines[i])
	}
	// Shuffle the repeats in among the rest, each behind its first.
	for i := len(lines) - 1; i >= orders; i-- {
		at := random.IntN(i + 1)
		if at > twice[i-orders] {
			lines[i], lines[at] = lines[at], lines[i]
		}
	}
	return lines, nil
}

// readLines reads NDJSON, at most limit lines (0: all). What does not decode is
// kept as it is.
func readLines(path string, limit int) ([]line, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--input: %w", err)
	}
	defer f.Close()
	var lines []line
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() && (limit == 0 || len(lines) < limit) {
		if len(scanner.Bytes()) > 0 {
			lines = append(lines, line{value: []byte(scanner.Text())})
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("--input %s: %w", path, err)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("--input %s: the file has no lines", path)
	}
	return lines, nil
}

// send produces the lines in order and notes where each went. The message key
// is the customer; an order without one has no key.
func send(ctx context.Context, client *kgo.Client, topic string, lines []line) error {
	failed := make(chan error, 1)
	for i := range lines {
		l := &lines[i]
		var o order
		r := &kgo.Record{Topic: topic, Value: l.value}
		if json.Unmarshal(l.value, &o) == nil {
			l.orderID = o.ID
			if o.Customer != "" {
				r.Key = []byte(o.Customer)
			}
		}
		client.Produce(ctx, r, func(r *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
				return
			}
			l.partition, l.offset = r.Partition, r.Offset
		})
	}
	if err := client.Flush(ctx); err != nil {
		return fmt.Errorf("send orders: %w", err)
	}
	select {
	case err := <-failed:
		return fmt.Errorf("send orders: %w", err)
	default:
		return nil
	}
}

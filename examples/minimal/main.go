// Command minimal is the smallest whole consumer: it books the orders of a
// Kafka topic with a payment provider, each once, with its fence in Redis.
//
// The README shows main and run; book, the effect, is in book.go.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/kafkasource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence/redisfence"
	"github.com/oncefence/oncefence/requeue/kafkarequeue"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	kafka := kgo.SeedBrokers("127.0.0.1:9092")
	source, err := kafkasource.New("billing", []string{"orders"}, nil, kafka)
	if err != nil {
		return err
	}
	producer, err := kafkarequeue.New(nil, kafka) // retries and dead letters
	if err != nil {
		return err
	}
	store, err := redisfence.New(redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}), nil)
	if err != nil {
		return err
	}
	charge := effect.Idempotent(book, effect.IdempotentOptions{Remembers: 23 * time.Hour})
	c, err := consumer.New(source, store, charge, &consumer.Options{Producer: producer})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

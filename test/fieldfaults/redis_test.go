package fieldfaults_test

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/redisfence"
	"github.com/oncefence/oncefence/test/servers"
)

// BL-086: a stop while 500 effects run ends none of their seals, and none of its
// cancellations costs a connection.
func TestAStopUnderLoadSealsOnItsConnections(t *testing.T) {
	const running = 500
	server := servers.OwnRedis(t, nil)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	f, err := redisfence.New(client, &redisfence.Options{Fence: &fence.Options{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	broker := memsource.NewBroker(nil)
	if err := broker.CreateTopic(topic, &memsource.TopicOptions{Partitions: 4}); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids("order-", running) {
		if _, err := broker.ProduceTo(of(int32(i%4)), order(id)); err != nil {
			t.Fatal(err)
		}
	}
	l := &ledger{}
	gate, begun := make(chan struct{}), make(chan struct{}, running)
	e := effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		begun <- struct{}{}
		<-gate
		return l.book(ctx, in)
	}, forever())
	o := &told{decisions: map[string]int{}}
	opts := &consumer.Options{
		Producer: broker.Producer(nil), Logger: slog.New(slog.DiscardHandler), Observer: o, Scope: fence.ScopeID, EndlessTopics: true,
		Concurrency: running,
	}
	_, stop := start(t, broker.Source(group, []string{topic}, nil), f, e, opts)
	deadline := time.After(30 * time.Second)
	for n := range running {
		select {
		case <-begun:
		case <-deadline:
			t.Fatalf("only %d effects began", n)
		}
	}
	before := connections(t, server.Addr())
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	close(gate)
	select {
	case <-stopped:
	case <-deadline:
		t.Fatal("the consumer did not stop")
	}
	made := connections(t, server.Addr()) - before - 1 // this question's own
	if one, more := l.once(); one != running || more != 0 || o.count(consumer.DecisionDone) != running {
		t.Errorf("%d booked once, %d more often, %d sealed", one, more, o.count(consumer.DecisionDone))
	}
	var committed int64
	for p := range int32(4) {
		at, _ := broker.Committed(group, driver.TopicPartition{Topic: topic, Partition: p})
		committed += at.Offset
	}
	if committed != running {
		t.Errorf("committed %d in all", committed)
	}
	if made > 10 {
		t.Errorf("the stop made %d new connections", made)
	}
}

// connections is how many the server has accepted since its start, on one of
// the caller's own.
func connections(t *testing.T, addr string) int {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	info, err := client.Info(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "total_connections_received:")
	text, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("total_connections_received is %q", text)
	}
	return n
}

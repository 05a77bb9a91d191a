package servers

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMain(m *testing.M) {
	if os.Getenv(orphanVariable) != "" {
		startOrphan()
		return
	}
	Main(m)
}

// orphanVariable makes this test binary the parent of an orphan.
const orphanVariable = "ONCEFENCE_TEST_ORPHAN"

// everyWay runs a round trip against a server from each origin. Only what the
// machine does not offer is left out, and with CI=true that fails.
func everyWay[S server](t *testing.T, start func(context.Context, Origin) (S, error), roundTrip func(*testing.T, S)) {
	for _, from := range []Origin{Docker, Program} {
		t.Run(string(from), func(t *testing.T) {
			began := time.Now()
			s, err := start(t.Context(), from)
			require(t, err)
			t.Logf("up after %v", time.Since(began).Round(time.Millisecond))
			if s.Origin() != from {
				t.Errorf("origin is %s, want %s", s.Origin(), from)
			}
			roundTrip(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

func TestRedisRoundTrip(t *testing.T) {
	start := func(ctx context.Context, from Origin) (*RedisServer, error) {
		return StartRedis(ctx, &RedisOptions{From: from, Args: []string{"--maxmemory", "64mb"}})
	}
	everyWay(t, start, func(t *testing.T, s *RedisServer) {
		client := redis.NewClient(&redis.Options{Addr: s.Addr()})
		defer client.Close()
		ctx := t.Context()
		if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := client.Get(ctx, "k").Result(); err != nil || got != "v" {
			t.Errorf("get: %q, %v", got, err)
		}
		for name, want := range map[string]string{
			"appendonly": "yes", "maxmemory-policy": "noeviction", "save": "", "maxmemory": "67108864",
		} {
			if got, err := client.ConfigGet(ctx, name).Result(); err != nil || got[name] != want {
				t.Errorf("%s is %q, want %q (%v)", name, got[name], want, err)
			}
		}
	})
}

func TestPostgresRoundTrip(t *testing.T) {
	start := func(ctx context.Context, from Origin) (*PostgresServer, error) {
		return StartPostgres(ctx, &PostgresOptions{From: from, NoFsync: true, Settings: map[string]string{"max_connections": "17"}})
	}
	everyWay(t, start, func(t *testing.T, s *PostgresServer) {
		ctx := t.Context()
		conn, err := pgx.Connect(ctx, s.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		var sum int
		if err := conn.QueryRow(ctx, "with t as (select generate_series(1, 4) n) select sum(n) from t").Scan(&sum); err != nil || sum != 10 {
			t.Errorf("sum: %d, %v", sum, err)
		}
		for name, want := range map[string]string{"fsync": "off", "max_connections": "17"} {
			var got string
			if err := conn.QueryRow(ctx, "select current_setting($1)", name).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %q, want %q (%v)", name, got, want, err)
			}
		}
	})
}

func TestThreeBrokers(t *testing.T) {
	s := OwnKafka(t, &KafkaOptions{From: Program, Brokers: 3})
	if len(s.Brokers()) != 3 {
		t.Errorf("brokers: %v, want 3", s.Brokers())
	}
	kafkaRoundTrip(t, s)
}

func TestKafkaRoundTrip(t *testing.T) {
	start := func(ctx context.Context, from Origin) (*KafkaServer, error) {
		return StartKafka(ctx, &KafkaOptions{From: from, Own: true})
	}
	everyWay(t, start, kafkaRoundTrip)
}

// kafkaRoundTrip produces in a transaction, which makes the broker talk to
// itself, and consumes in a group of the new protocol, read-committed.
func kafkaRoundTrip(t *testing.T, s *KafkaServer) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	producer, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers()...), kgo.TransactionalID("tx"), kgo.DefaultProduceTopic("orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	created, err := kadm.NewClient(producer).CreateTopic(ctx, 3, -1, nil, "orders")
	if err = errors.Join(err, created.Err); err != nil {
		t.Fatal(err)
	}
	if err := producer.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := producer.ProduceSync(ctx, kgo.StringRecord("one")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := producer.EndTransaction(ctx, kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	consumer, err := kgo.NewClient(
		kgo.SeedBrokers(s.Brokers()...), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("orders"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.DisableAutoCommit(), kgo.ServerSideBalancer(),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	fetches := consumer.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	records := fetches.Records()
	if len(records) != 1 || string(records[0].Value) != "one" {
		t.Fatalf("got %d records, want the one that was produced", len(records))
	}
	if err := consumer.CommitRecords(ctx, records...); err != nil {
		t.Errorf("commit: %v", err)
	}
	groups, err := kadm.NewClient(producer).ListGroups(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := groups["g"].GroupType; !strings.EqualFold(got, "consumer") {
		t.Errorf("group type is %q, want the new protocol's", got)
	}
}

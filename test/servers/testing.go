package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	mains   atomic.Int64 // calls of Main, to tell tests that forgot it
	skipped atomic.Int64 // tests that found no server

	sharedRedis    shared[*RedisServer]
	sharedKafka    shared[*KafkaServer]
	sharedPostgres shared[*PostgresServer]
)

// Redis returns the Redis that the tests of this process share.
func Redis(tb testing.TB) *RedisServer {
	tb.Helper()
	return sharedRedis.get(tb, func(ctx context.Context) (*RedisServer, error) { return StartRedis(ctx, nil) })
}

// Kafka returns the Kafka cluster that the tests of this process share. It has
// no topics but those that tests make.
func Kafka(tb testing.TB) *KafkaServer {
	tb.Helper()
	return sharedKafka.get(tb, func(ctx context.Context) (*KafkaServer, error) { return StartKafka(ctx, nil) })
}

// Postgres returns the PostgreSQL that the tests of this process share.
func Postgres(tb testing.TB) *PostgresServer {
	tb.Helper()
	return sharedPostgres.get(tb, func(ctx context.Context) (*PostgresServer, error) { return StartPostgres(ctx, nil) })
}

// OwnRedis starts a Redis for this test alone and stops it at its end.
func OwnRedis(tb testing.TB, opts *RedisOptions) *RedisServer {
	tb.Helper()
	o := RedisOptions{}
	if opts != nil {
		o = *opts
	}
	o.Own = true
	return own(tb, func(ctx context.Context) (*RedisServer, error) { return StartRedis(ctx, &o) })
}

// OwnKafka starts a Kafka cluster for this test alone and stops it at its end.
func OwnKafka(tb testing.TB, opts *KafkaOptions) *KafkaServer {
	tb.Helper()
	o := KafkaOptions{}
	if opts != nil {
		o = *opts
	}
	o.Own = true
	return own(tb, func(ctx context.Context) (*KafkaServer, error) { return StartKafka(ctx, &o) })
}

// OwnPostgres starts a PostgreSQL for this test alone and stops it at its end.
func OwnPostgres(tb testing.TB, opts *PostgresOptions) *PostgresServer {
	tb.Helper()
	o := PostgresOptions{}
	if opts != nil {
		o = *opts
	}
	o.Own = true
	return own(tb, func(ctx context.Context) (*PostgresServer, error) { return StartPostgres(ctx, &o) })
}

// Main runs the tests, stops the shared servers and says how many tests were
// skipped for lack of one. It is all that a TestMain needs.
func Main(m *testing.M) {
	mains.Add(1)
	m.Run()
	if err := errors.Join(sharedRedis.close(), sharedKafka.close(), sharedPostgres.close()); err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
	}
	if n := skipped.Load(); n > 0 {
		shout(fmt.Sprintf("%d TESTS WERE SKIPPED FOR LACK OF A SERVER", n))
	}
}

// shared starts one server per process.
type shared[S server] struct {
	mu      sync.Mutex
	started bool
	server  S
	err     error
}

func (s *shared[S]) get(tb testing.TB, start func(context.Context) (S, error)) S {
	tb.Helper()
	if mains.Load() == 0 {
		tb.Fatal("shared servers are stopped by servers.Main: add func TestMain(m *testing.M) { servers.Main(m) }")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.server, s.err = start(tb.Context())
		s.started = true
	}
	require(tb, s.err)
	return s.server
}

func (s *shared[S]) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started || s.err != nil {
		return nil
	}
	return s.server.Close()
}

func own[S server](tb testing.TB, start func(context.Context) (S, error)) S {
	tb.Helper()
	s, err := start(tb.Context())
	require(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("stop server: %v", err)
		}
	})
	return s
}

// require skips the test when there is no server and fails it when there is one
// that does not work, or when CI=true.
func require(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case errors.Is(err, ErrMissing) && os.Getenv("CI") != "true":
		words := fmt.Sprintf("SKIPPED FOR LACK OF A SERVER (%d so far): %s: %v", skipped.Add(1), tb.Name(), err)
		shout(words)
		tb.Skip(words)
	default:
		tb.Fatal(err)
	}
}

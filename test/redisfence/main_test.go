package redisfence_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/redisfence"
	"github.com/oncefence/oncefence/test/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// connect opens a client that is closed at the end of the test.
func connect(tb testing.TB, url string) *redis.Client {
	tb.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		tb.Fatal(err)
	}
	client := redis.NewClient(opts)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// open makes a store that is closed at the end of the test.
func open(tb testing.TB, client redis.UniversalClient, opts *redisfence.Options) *redisfence.Store {
	tb.Helper()
	store, err := redisfence.NewStore(client, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

// namespace is one of its own for this test.
func namespace(tb testing.TB) string {
	tb.Helper()
	return fmt.Sprintf("%%-:%s-%d", tb.Name(), time.Now().UnixNano())
}

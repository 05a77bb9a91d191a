package metamorphic

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/boltfence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/fencetest"
	"github.com/oncefence/oncefence/fence/memfence"
	"github.com/oncefence/oncefence/fence/pgfence"
	"github.com/oncefence/oncefence/fence/redisfence"
	"github.com/oncefence/oncefence/test/servers"
)

// subject is a store that is compared with the reference. A new store needs a
// line in subjects.
type subject struct {
	name string
	open func(t *testing.T) driver.Store
	// lease is the shortest limit that makes sense on it.
	lease time.Duration
	moves int
}

var subjects = []subject{
	{"mem", func(*testing.T) driver.Store { return memfence.NewStore(nil) }, 2 * time.Millisecond, 80},
	{"mem behind faults", faulty(func(*testing.T) driver.Store { return memfence.NewStore(nil) }), 2 * time.Millisecond, 80},
	{"bolt", openBolt, 10 * time.Millisecond, 40},
	{"bolt behind faults", faulty(openBolt), 10 * time.Millisecond, 40},
	{"redis", openRedis, 10 * time.Millisecond, 40},
	{"redis behind faults", faulty(openRedis), 10 * time.Millisecond, 40},
	{"postgres", openPostgres, 10 * time.Millisecond, 40},
	{"postgres behind faults", faulty(openPostgres), 10 * time.Millisecond, 40},
}

func openBolt(t *testing.T) driver.Store {
	store, err := boltfence.OpenStore(filepath.Join(t.TempDir(), "fence.bolt"), &boltfence.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func openRedis(t *testing.T) driver.Store {
	opts, err := redis.ParseURL(servers.Redis(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	store, err := redisfence.NewStore(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func openPostgres(t *testing.T) driver.Store {
	pool, err := pgxpool.New(t.Context(), servers.Postgres(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgfence.NewStore(pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func faulty(open func(t *testing.T) driver.Store) func(t *testing.T) driver.Store {
	return func(t *testing.T) driver.Store {
		return fencetest.Faulty(open(t), fencetest.FaultyOptions{Seed: 1, Double: 0.4})
	}
}

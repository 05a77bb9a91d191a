package redisfence_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/redisfence"
	"github.com/oncefence/oncefence/test/servers"
)

// The grade follows the live settings, also where CONFIG is refused.
func TestGrade(t *testing.T) {
	client := connect(t, servers.OwnRedis(t, nil).URL())
	ctx := t.Context()
	if err := client.Do(ctx, "acl", "setuser", "tenant", "on", ">secret", "~idemp:*", "+@all", "-config").Err(); err != nil {
		t.Fatal(err)
	}
	managed := redis.NewClient(&redis.Options{Addr: client.Options().Addr, Username: "tenant", Password: "secret"})
	t.Cleanup(func() { _ = managed.Close() })
	for _, c := range []struct {
		set              [2]string
		open, restricted driver.Level
	}{
		{[2]string{"appendfsync", "everysec"}, driver.GradeRestart, driver.GradeRestart},
		{[2]string{"appendfsync", "always"}, driver.GradeMachine, driver.GradeRestart},
		{[2]string{"appendonly", "no"}, driver.GradeVolatile, driver.GradeVolatile},
	} {
		if err := client.ConfigSet(ctx, c.set[0], c.set[1]).Err(); err != nil {
			t.Fatal(err)
		}
		for who, want := range map[*redis.Client]driver.Level{client: c.open, managed: c.restricted} {
			g, err := open(t, who, nil).Grade(ctx)
			if err != nil || g.Level != want || g.Eviction != "noeviction" || g.Skew.Abs() > time.Minute || !strings.Contains(g.Detail, "append-only") {
				t.Errorf("%s %s as %q: %+v, %v, want %v", c.set[0], c.set[1], who.Options().Username, g, err, want)
			}
		}
	}
}

// A server that may drop records is refused when a namespace is opened, and
// taken when the user says so.
func TestEviction(t *testing.T) {
	client := connect(t, servers.OwnRedis(t, &servers.RedisOptions{Args: []string{"--maxmemory-policy", "volatile-lru"}}).URL())
	ns, err := fence.NewNamespace(fence.Nil, "billing")
	if err != nil {
		t.Fatal(err)
	}
	f, err := redisfence.New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(t.Context(), ns); !errors.Is(err, fence.ErrEviction) {
		t.Errorf("open answers %v", err)
	}
	f, err = redisfence.New(client, &redisfence.Options{Fence: &fence.Options{AllowEviction: true}})
	if err != nil {
		t.Fatal(err)
	}
	space, err := f.Open(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(space.Close(t.Context()), f.Close()); err != nil {
		t.Error(err)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the user's client was closed: %v", err)
	}
	if _, err := f.Store().Get(t.Context(), ns.Text(), nil); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("get after close: %v", err)
	}
}

// The commands that the package's documentation names are enough.
func TestSmallestACL(t *testing.T) {
	client := connect(t, servers.OwnRedis(t, nil).URL())
	rules := "on >secret ~idemp:* -@all +hello +evalsha +eval +time +info +scan +get +set +setnx +getrange +setrange +hget +hset +hgetall"
	args := []any{"acl", "setuser", "worker"}
	for rule := range strings.FieldsSeq(rules) {
		args = append(args, rule)
	}
	if err := client.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	worker := redis.NewClient(&redis.Options{Addr: client.Options().Addr, Username: "worker", Password: "secret"})
	t.Cleanup(func() { _ = worker.Close() })
	store, ns := open(t, worker, nil), namespace(t)
	claims := claimsOf(1, 3)
	held := hold(t, store, ns, claims)
	renewal := driver.Transition{Op: driver.Renew, Key: claims[0].Key, Token: held[0].Record.Token, Lease: time.Minute}
	wantApplied(t, store.Apply(t.Context(), ns, []driver.Transition{renewal}), driver.OK)
	wantApplied(t, store.Apply(t.Context(), ns, sealsOf(claims[:2], held[:2])), driver.OK)
	release := driver.Transition{Op: driver.Release, Key: claims[2].Key, Nonce: claims[2].Nonce}
	wantApplied(t, store.Apply(t.Context(), ns, []driver.Transition{release}), driver.OK)
	seen := 0
	err := store.Scan(t.Context(), ns, driver.Filter{}, func(driver.Digest, driver.Record) bool { seen++; return true })
	if err != nil || seen != 2 {
		t.Errorf("scan saw %d of 2: %v", seen, err)
	}
	if _, err := store.Marker(t.Context(), ns, driver.Marker{Epoch: [16]byte{1}, Format: 1, Partitions: map[string]int32{"orders": 3}}); err != nil {
		t.Error(err)
	}
	if g, err := store.Grade(t.Context()); err != nil || g.Level != driver.GradeRestart {
		t.Errorf("grade %+v, %v", g, err)
	}
}

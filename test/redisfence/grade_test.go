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

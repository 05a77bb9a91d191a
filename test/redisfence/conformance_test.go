package redisfence_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/fencetest"
	"github.com/oncefence/oncefence/fence/redisfence"
	"github.com/oncefence/oncefence/test/servers"
)

func harness(client redis.UniversalClient) fencetest.Harness {
	again := func(context.Context, driver.Store) (driver.Store, error) { return redisfence.NewStore(client, nil) }
	return fencetest.Harness{
		Open:     func(ctx context.Context) (driver.Store, error) { return again(ctx, nil) },
		Second:   again,
		Parallel: true,
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	fencetest.Test(t, harness(connect(t, servers.Redis(t).URL())))
}

func TestConformanceCluster(t *testing.T) {
	t.Parallel()
	fencetest.Test(t, harness(startCluster(t).client(t)))
}

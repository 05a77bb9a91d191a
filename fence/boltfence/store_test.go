package boltfence_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/oncefence/oncefence/fence/boltfence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/fencetest"
)

func open(t *testing.T, path string, opts *boltfence.Options) *boltfence.Store {
	t.Helper()
	store, err := boltfence.OpenStore(path, opts)
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

func TestConformance(t *testing.T) {
	fencetest.Test(t, fencetest.Harness{
		Open: func(context.Context) (driver.Store, error) {
			return boltfence.OpenStore(filepath.Join(t.TempDir(), "fence.bolt"), nil)
		},
		Parallel: true,
	})
}

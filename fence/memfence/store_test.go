package memfence_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/fencetest"
	"github.com/oncefence/oncefence/fence/memfence"
)

// harness runs the store on the fake clock of a synctest bubble.
func harness() fencetest.Harness {
	return fencetest.Harness{
		Open: func(context.Context) (driver.Store, error) { return memfence.NewStore(nil), nil },
		Pass: func(_ context.Context, d time.Duration) error {
			time.Sleep(d)
			return nil
		},
		FreeTime: true,
		Around:   synctest.Test,
	}
}

func TestConformance(t *testing.T) { fencetest.Test(t, harness()) }

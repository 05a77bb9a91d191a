package memfence_test

import (
	"errors"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/memfence"
)

func TestNewGivesAFence(t *testing.T) {
	f, err := memfence.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Retention() != fence.DefaultRetention {
		t.Errorf("retention is %v", f.Retention())
	}
	f, err = memfence.New(&memfence.Options{Fence: &fence.Options{Retention: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	if f.Retention() != time.Hour {
		t.Errorf("retention is %v, want the one of the options", f.Retention())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Store().Get(t.Context(), "ns", nil); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
	if f, err := memfence.New(&memfence.Options{Fence: &fence.Options{Retention: -1}}); err == nil {
		t.Errorf("a negative retention made %v", f)
	}
}

func TestGradeIsVolatile(t *testing.T) {
	grade, err := memfence.NewStore(nil).Grade(t.Context())
	if err != nil || grade.Level != driver.GradeVolatile {
		t.Errorf("%v, %v", grade, err)
	}
}

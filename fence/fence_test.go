package fence_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/memfence"
)

func TestNewRefusesWrongOptions(t *testing.T) {
	for want, o := range map[string]fence.Options{
		"Retention is -1ns: it must be at least 50ms (0 means 336h0m0s)":     {Retention: -1},
		"Retention is 1ms: it must be at least 50ms":                         {Retention: time.Millisecond},
		"DeadRetention is -1h0m0s: it must be at least 50ms":                 {DeadRetention: -time.Hour},
		"ClaimTimeout is -1s: it must be at least 50ms (0 means 10s)":        {ClaimTimeout: -time.Second},
		"ClaimTimeout is 31m0s: it must be at most 30m0s":                    {ClaimTimeout: 31 * time.Minute},
		"Retention is 1h0m0s and Endless is set: leave one of them out":      {Retention: time.Hour, Endless: true},
		"Demand is 9: use driver.GradeVolatile, GradeRestart, GradeMachine ": {Demand: 9},
	} {
		f, err := fence.New(memfence.NewStore(nil), &o)
		if err == nil || f != nil || !strings.Contains(err.Error(), "fence.Options."+want) {
			t.Errorf("New = %v, want %q", err, want)
		}
	}
	if _, err := fence.New(nil, nil); err == nil || !strings.Contains(err.Error(), "store is nil") {
		t.Errorf("New without a store = %v", err)
	}
}

func TestOptionsDefaults(t *testing.T) {
	store := memfence.NewStore(nil)
	for name, o := range map[string]*fence.Options{"nil": nil, "zero": {}} {
		f, err := fence.New(store, o)
		if err != nil {
			t.Fatal(err)
		}
		if f.Retention() != 14*24*time.Hour || f.DeadRetention() != 30*24*time.Hour || f.Store() != driver.Store(store) {
			t.Errorf("%s: retention %v, dead %v", name, f.Retention(), f.DeadRetention())
		}
	}
	f, err := fence.New(store, &fence.Options{Endless: true})
	if err != nil || f.Retention() != 0 {
		t.Errorf("endless: retention %v, error %v", f.Retention(), err)
	}
}

func TestEndlessKeepsSealedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), &fence.Options{Endless: true})
		h := claim(t, s, request(1), driver.New).Hold
		apply(t, s, seal(h), driver.OK)
		h.Drop()
		pass(100 * 365 * 24 * time.Hour)
		claim(t, s, request(1), driver.Duplicate)
		if s.Retention() != 0 || get(t, s, 1).Expire != 0 {
			t.Errorf("retention %v, record %+v", s.Retention(), get(t, s, 1))
		}
	})
}

// Field fault: lease and retention are compared on one clock in one unit.
func TestLeaseOfHalfASecondAndRetentionOfAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), &fence.Options{Retention: time.Hour})
		short := func() *fence.Request {
			r := request(1)
			r.Lease = 500 * time.Millisecond
			return r
		}
		claim(t, s, short(), driver.New).Hold.Drop()
		pass(400 * time.Millisecond)
		if c := claim(t, s, short(), driver.Held); c.Left != 100*time.Millisecond {
			t.Errorf("left = %v, want 100ms", c.Left)
		}
		pass(200 * time.Millisecond)
		h := claim(t, s, short(), driver.InDoubt).Hold
		apply(t, s, seal(h), driver.OK)
		h.Drop()
		pass(59 * time.Minute)
		claim(t, s, short(), driver.Duplicate)
		pass(time.Minute)
		claim(t, s, short(), driver.New).Hold.Drop()
	})
}

func TestOpenChecksTheGrade(t *testing.T) {
	for name, tt := range map[string]struct {
		grade driver.Grade
		err   error
		opts  fence.Options
		want  error  // of Open
		says  string // in the error, or in the log
	}{
		"volatile":            {grade: driver.Grade{Level: driver.GradeVolatile, Detail: "save is off"}, says: "may forget claims"},
		"unknown":             {grade: driver.Grade{Level: driver.GradeUnknown}, says: "may forget claims"},
		"restart":             {grade: driver.Grade{Level: driver.GradeRestart}},
		"demanded and there":  {grade: driver.Grade{Level: driver.GradeMachine}, opts: fence.Options{Demand: driver.GradeMachine}},
		"demanded volatile":   {grade: driver.Grade{Level: driver.GradeVolatile}, opts: fence.Options{Demand: driver.GradeVolatile}},
		"below the demanded":  {grade: driver.Grade{Level: driver.GradeRestart, Detail: "appendfsync everysec"}, opts: fence.Options{Demand: driver.GradeMachine}, want: fence.ErrGrade, says: "demanded machine, found restart (appendfsync everysec)"},
		"demanded of unknown": {grade: driver.Grade{}, opts: fence.Options{Demand: driver.GradeVolatile}, want: fence.ErrGrade, says: "found unknown"},
		"noeviction":          {grade: driver.Grade{Level: driver.GradeMachine, Eviction: "noeviction"}},
		"eviction":            {grade: driver.Grade{Level: driver.GradeMachine, Eviction: "allkeys-lru"}, want: fence.ErrEviction, says: "allkeys-lru"},
		"eviction of some":    {grade: driver.Grade{Level: driver.GradeMachine, Eviction: "volatile-ttl"}, want: fence.ErrEviction, says: "set maxmemory-policy noeviction"},
		"eviction accepted":   {grade: driver.Grade{Level: driver.GradeMachine, Eviction: "allkeys-lru"}, opts: fence.Options{AllowEviction: true}, says: "may evict"},
		"not readable":        {err: errDown, want: errDown, says: "read the fence store's settings"},
	} {
		t.Run(name, func(t *testing.T) {
			store := newFaulty()
			store.grade = func() (driver.Grade, error) { return tt.grade, tt.err }
			var log bytes.Buffer
			tt.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			f, err := fence.New(store, &tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			s, err := f.Open(t.Context(), namespace(t))
			if !errors.Is(err, tt.want) {
				t.Fatalf("Open = %v, want %v", err, tt.want)
			}
			said := log.String()
			if err != nil {
				said = err.Error()
			} else {
				if s.Grade() != tt.grade {
					t.Errorf("Grade = %+v", s.Grade())
				}
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if !strings.Contains(said, tt.says) || tt.says == "" && said != "" {
				t.Errorf("said %q, want %q", said, tt.says)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	store := newFaulty()
	f := quiet(t, store, nil)
	if _, err := f.Open(t.Context(), fence.Namespace{}); err == nil || !strings.Contains(err.Error(), "NewNamespace") {
		t.Errorf("an empty namespace: %v", err)
	}
	for want, marker := range map[string]driver.Marker{
		"format 2, this program writes 1": {Epoch: [16]byte{1}, Format: 2, Now: 1},
		"without its clock":               {Epoch: [16]byte{1}, Format: driver.FormatVersion},
		"clock or epoch":                  {Format: driver.FormatVersion, Now: 1},
	} {
		store.marker = func(driver.Marker) (driver.Marker, error) { return marker, nil }
		if _, err := f.Open(t.Context(), namespace(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open = %v, want %q", err, want)
		}
	}
	store.marker = func(driver.Marker) (driver.Marker, error) { return driver.Marker{}, errDown }
	if _, err := f.Open(t.Context(), namespace(t)); !errors.Is(err, errDown) {
		t.Errorf("Open = %v, want the store's error", err)
	}
}

func TestMarkNoticesAnotherEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		tp := driver.TopicPartition{Topic: "orders", Partition: 3}
		if _, err := s.Mark(t.Context(), driver.Marker{Partitions: map[string]int32{"orders": 6}, Committed: map[driver.TopicPartition]int64{tp: 41}}); err != nil {
			t.Fatal(err)
		}
		again := open(t, store, nil)
		if again.Epoch() != s.Epoch() || s.Epoch() == ([16]byte{}) {
			t.Errorf("epochs of one store: %x and %x", s.Epoch(), again.Epoch())
		}
		marker, err := again.Mark(t.Context(), driver.Marker{Committed: map[driver.TopicPartition]int64{tp: 12}})
		if err != nil || marker.Committed[tp] != 41 || marker.Partitions["orders"] != 6 || marker.Epoch != s.Epoch() {
			t.Errorf("marker: %+v (%v)", marker, err)
		}
		store.marker = func(driver.Marker) (driver.Marker, error) { return driver.Marker{}, errDown }
		if _, err := s.Mark(t.Context(), driver.Marker{}); !errors.Is(err, errDown) || errors.Is(err, fence.ErrEpoch) {
			t.Errorf("with the store down: %v", err)
		}
		emptied := memfence.NewStore(nil)
		store.marker = func(update driver.Marker) (driver.Marker, error) {
			return emptied.Marker(context.Background(), namespaceText, update)
		}
		for range 2 { // the first call makes the marker of the emptied store
			if _, err := s.Mark(t.Context(), driver.Marker{}); !errors.Is(err, fence.ErrEpoch) {
				t.Errorf("after the store was emptied: %v", err)
			}
		}
		// An offered epoch is not taken: an emptied store must not get the old one.
		emptied = memfence.NewStore(nil)
		if _, err := s.Mark(t.Context(), driver.Marker{Epoch: s.Epoch()}); !errors.Is(err, fence.ErrEpoch) {
			t.Errorf("with the old epoch offered: %v", err)
		}
	})
}

// failing answers every call with errDown.
type failing struct{ driver.Store }

func (failing) Get(context.Context, string, []driver.Digest) ([]driver.Record, error) {
	return nil, errDown
}

func (failing) Scan(context.Context, string, driver.Filter, func(driver.Digest, driver.Record) bool) error {
	return errDown
}
func (failing) Purge(context.Context, string, int) (int, error) { return 0, errDown }

func (failing) Claim(_ context.Context, _ string, claims []driver.Claim) []driver.Claimed {
	return failClaims(claims)
}

func TestErrorsKeepTheirCauseAndNameThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &observer{}
		s := open(t, failing{memfence.NewStore(nil)}, &fence.Options{Observer: seen})
		r := request(1)
		_, get := s.Get(t.Context(), []driver.Digest{key(1).Digest()})
		_, purge := s.Purge(t.Context(), 10)
		for what, err := range map[string]error{
			"get": get, "purge": purge, "scan": s.Scan(t.Context(), driver.Filter{}, nil),
			"claim": s.Claim(t.Context(), []*fence.Request{r})[0].Err,
		} {
			if !errors.Is(err, errDown) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
			if !strings.Contains(err.Error(), namespaceText) && !strings.Contains(err.Error(), "order-1") {
				t.Errorf("%s names neither namespace nor key: %v", what, err)
			}
			if seen.failed[what] != 1 {
				t.Errorf("%s: %d failures observed", what, seen.failed[what])
			}
		}
		s.Abandon(r)
		for _, op := range []string{"grade", "marker"} {
			if !slices.Contains(seen.ops, op) || seen.failed[op] != 0 {
				t.Errorf("%s: observed %v, %d failures", op, seen.ops, seen.failed[op])
			}
		}
	})
}

func TestScanAndPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), &fence.Options{Retention: time.Hour})
		for n := range 3 {
			h := claim(t, s, request(n), driver.New).Hold
			if n > 0 {
				apply(t, s, seal(h), driver.OK)
			}
			h.Drop()
		}
		pass(30 * time.Minute)
		scan := func(f driver.Filter) (n int) {
			err := s.Scan(t.Context(), f, func(driver.Digest, driver.Record) bool { n++; return true })
			if err != nil {
				t.Error(err)
			}
			return n
		}
		if all, doubt := scan(driver.Filter{}), scan(driver.Filter{InDoubt: true}); all != 3 || doubt != 1 {
			t.Errorf("scanned %d, in doubt %d, want 3 and 1", all, doubt)
		}
		pass(30 * time.Minute)
		if n, err := s.Purge(t.Context(), 10); n != 2 || err != nil {
			t.Errorf("purged %d (%v), want the 2 sealed ones: doubt stays", n, err)
		}
		if n := scan(driver.Filter{}); n != 1 {
			t.Errorf("%d records left, want 1", n)
		}
	})
}

func TestNowIsTheStoresClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newJumpy()
		store.jump(42 * time.Hour)
		s := open(t, store, nil)
		pass(time.Minute)
		if ahead := time.Until(s.Now()); ahead != 42*time.Hour {
			t.Errorf("Now is %v ahead, want 42h", ahead)
		}
	})
}

func TestFenceCloseClosesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := quiet(t, memfence.NewStore(nil), nil)
		s, err := f.Open(t.Context(), namespace(t))
		if err != nil {
			t.Fatal(err)
		}
		if s.Namespace().Text() != namespaceText {
			t.Errorf("namespace = %v", s.Namespace())
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := f.Open(t.Context(), namespace(t)); !errors.Is(err, fence.ErrClosed) {
			t.Errorf("Open after Close = %v, want ErrClosed", err)
		}
	})
}

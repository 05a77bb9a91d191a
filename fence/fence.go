package fence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// Defaults of Options.
const (
	DefaultLease           = 10 * time.Second
	DefaultAtMostOnceLease = 60 * time.Second
	DefaultRetention       = 14 * 24 * time.Hour
	DefaultDeadRetention   = 30 * 24 * time.Hour
	DefaultClaimTimeout    = 10 * time.Second
	// MinLease is the shortest lease that Claim takes.
	MinLease = 50 * time.Millisecond
)

// ErrLeaseLost: the lease ended before the holder was done, see Hold.Context.
var ErrLeaseLost = errors.New("the lease of the claim ended or was lost")

// Errors of opening a fence. Match them with errors.Is; the text says what to
// change.
var (
	// ErrEviction: the store may drop records when its memory is full.
	ErrEviction = errors.New("fence store may evict records")
	// ErrGrade: the store's answers survive less than was demanded.
	ErrGrade = errors.New("fence store is below the demanded grade")
	// ErrEpoch: the store is not the one that was used before, or was emptied.
	ErrEpoch = errors.New("fence store has another epoch")
	// ErrClosed is returned after Close.
	ErrClosed = driver.ErrClosed
)

// Options of a Fence. The zero value and nil mean the defaults.
type Options struct {
	// Retention is how long a sealed key answers duplicate; 0 is
	// DefaultRetention (14 days). Less than MinLease and negative are refused: a
	// receipt that never expires needs Endless.
	Retention time.Duration
	// Endless keeps sealed keys without end. The store grows without bound.
	Endless bool
	// DeadRetention is how long dead and requeued records without doubt are
	// kept; 0 is DefaultDeadRetention (30 days). It must not be shorter than
	// the topics that hold their copies. Doubt is kept until it is resolved.
	DeadRetention time.Duration
	// ClaimTimeout is the time after which the store refuses a claim that
	// travelled so long; 0 is DefaultClaimTimeout (10 s). At most half of
	// driver.TombstoneLife.
	ClaimTimeout time.Duration
	// Demand is the lowest grade to start with. The zero value demands none; a
	// grade below restart is then logged as a warning.
	Demand driver.Level
	// AllowEviction accepts a store that may drop records under memory
	// pressure. Every dropped record may be an effect that happens twice. It is
	// logged as a warning.
	AllowEviction bool
	// Observer sees store calls; nil sees none.
	Observer Observer
	// Logger gets warnings; nil is slog.Default().
	Logger *slog.Logger
}

// Observer sees what a fence asks its store. It is called from several
// goroutines and must not block.
type Observer interface {
	// StoreCall reports one request: op is claim, apply, renew, transact, get,
	// scan, purge, marker or grade; items is the batch size; failed counts the items
	// that came back with an error.
	StoreCall(op string, items, failed int, took time.Duration)
	// Renewed reports a renewal batch: how many leases were renewed and how
	// many were lost to another holder.
	Renewed(renewed, lost int)
}

// Fence is a store of claims with the checks, clocks and renewals that every
// store needs. It serves any number of namespaces and goroutines.
type Fence struct {
	store driver.Store
	opts  Options
	now   func() time.Time // time.Now, except in tests
}

// New wraps a store. It does not contact it. Adapters such as memfence.New
// call it and return the result. The error names the option that is wrong.
func New(store driver.Store, opts *Options) (*Fence, error) {
	if store == nil {
		return nil, errors.New("fence.New: store is nil")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Endless && o.Retention != 0 {
		return nil, fmt.Errorf("fence.Options.Retention is %v and Endless is set: leave one of them out", o.Retention)
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"Retention", &o.Retention, DefaultRetention},
		{"DeadRetention", &o.DeadRetention, DefaultDeadRetention},
		{"ClaimTimeout", &o.ClaimTimeout, DefaultClaimTimeout},
	} {
		if *d.value == 0 {
			*d.value = d.zero
		}
		if *d.value < MinLease {
			return nil, fmt.Errorf("fence.Options.%s is %v: it must be at least %v (0 means %v)", d.name, *d.value, MinLease, d.zero)
		}
	}
	if most := driver.TombstoneLife / 2; o.ClaimTimeout > most {
		return nil, fmt.Errorf("fence.Options.ClaimTimeout is %v: it must be at most %v", o.ClaimTimeout, most)
	}
	if o.Demand > driver.GradeReplicated {
		return nil, fmt.Errorf("fence.Options.Demand is %d: use driver.GradeVolatile, GradeRestart, GradeMachine or GradeReplicated", o.Demand)
	}
	if o.Endless {
		o.Retention = 0
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	return &Fence{store: store, opts: o, now: time.Now}, nil
}

// Retention is how long sealed keys are kept; 0 means without end.
func (f *Fence) Retention() time.Duration { return f.opts.Retention }

// DeadRetention is how long dead and requeued records without doubt are kept.
func (f *Fence) DeadRetention() time.Duration { return f.opts.DeadRetention }

// Store returns the store, for tools that read or purge.
func (f *Fence) Store() driver.Store { return f.store }

// Close closes the store. Spaces must be closed before.
func (f *Fence) Close() error { return f.store.Close() }

// check reads the grade and refuses what was not demanded.
func (f *Fence) check(ctx context.Context) (driver.Grade, error) {
	start := f.now()
	grade, err := f.store.Grade(ctx)
	f.opts.Observer.StoreCall("grade", 1, failures(err), f.now().Sub(start))
	if err != nil {
		return grade, fmt.Errorf("read the fence store's settings: %w", err)
	}
	if evicts := grade.Eviction != "" && grade.Eviction != "noeviction"; evicts && f.opts.AllowEviction {
		f.opts.Logger.Warn("fence store may evict records: a sealed key can vanish and its effect run again", "policy", grade.Eviction)
	} else if evicts {
		return grade, fmt.Errorf("%w: its eviction policy is %q, so a sealed key can vanish and its effect run again: set maxmemory-policy noeviction, or set fence.Options.AllowEviction", ErrEviction, grade.Eviction)
	}
	if f.opts.Demand != driver.GradeUnknown && grade.Level < f.opts.Demand {
		return grade, fmt.Errorf("%w: demanded %s, found %s (%s)", ErrGrade, f.opts.Demand, grade.Level, grade.Detail)
	}
	if f.opts.Demand == driver.GradeUnknown && grade.Level < driver.GradeRestart {
		f.opts.Logger.Warn("fence store may forget claims when its process ends", "grade", grade.Level.String(), "detail", grade.Detail)
	}
	return grade, nil
}

func failures(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

type noObserver struct{}

func (noObserver) StoreCall(string, int, int, time.Duration) {}
func (noObserver) Renewed(int, int)                          {}

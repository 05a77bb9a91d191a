package fencetest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/oncefence/oncefence/fence/driver"
)

// ErrFault is what a caller of a [Faults] gets instead of an answer.
var ErrFault = errors.New("made-up fault: the answer never came")

// FaultyOptions says how often a batch of claims or transitions meets which
// fault. Shares are between 0 and 1; 0 is DefaultShare, negative is never.
type FaultyOptions struct {
	// Seed makes the faults repeatable for calls in the same order.
	Seed uint64
	// LoseRequest: the batch never arrives, the caller gets ErrFault.
	LoseRequest float64
	// LoseReply: the batch is applied, the caller gets ErrFault.
	LoseReply float64
	// Delay: the caller gets ErrFault, the batch arrives just before the next call.
	Delay float64
	// Double: the batch is applied and answered, and arrives once more, at once
	// or after up to Late further calls.
	Double float64
	// Late is how many calls a double may be late; 0 is DefaultLate, negative
	// means that doubles come at once.
	Late int
}

// Defaults of FaultyOptions.
const (
	DefaultShare = 0.1
	DefaultLate  = 12
)

// Faults is a store behind a bad network. Make it with [Faulty].
//
// Late doubles hold what took effect only: claims that were granted and
// transitions that were not refused. One that took none would, late, be a new
// request, which is something else (a claim names the time after which it is
// refused for that). Renewals come twice at once: late, they lengthen a lease.
type Faults struct {
	driver.Store
	opts FaultyOptions

	mu   sync.Mutex
	rand *rand.Rand
	late []late
	met  int
}

// late is a request that is still on its way.
type late struct {
	calls    int // arrives when so many further calls were made
	claims   bool
	seals    bool
	delivery func(ctx context.Context)
}

var _ driver.Store = (*Faults)(nil)

// Faulty puts a bad network before a store. The faults are those of claims and
// transitions; other calls pass.
func Faulty(store driver.Store, opts FaultyOptions) *Faults {
	for _, share := range []*float64{&opts.LoseRequest, &opts.LoseReply, &opts.Delay, &opts.Double} {
		if *share == 0 {
			*share = DefaultShare
		}
	}
	if opts.Late == 0 {
		opts.Late = DefaultLate
	}
	return &Faults{Store: store, opts: opts, rand: rand.New(rand.NewPCG(opts.Seed, 1))}
}

// fate is what a call meets.
type fate struct {
	loseRequest, loseReply, delay, double bool
	calls                                 int
}

// meet draws a call's fate and delivers what arrives before it.
func (f *Faults) meet(ctx context.Context) fate {
	f.mu.Lock()
	var due []late
	f.late = slices.DeleteFunc(f.late, func(l late) bool {
		if l.calls <= 0 {
			due = append(due, l)
		}
		return l.calls <= 0
	})
	for i := range f.late {
		f.late[i].calls--
	}
	hit := func(share float64) bool { return f.rand.Float64() < share }
	drawn := fate{loseRequest: hit(f.opts.LoseRequest), loseReply: hit(f.opts.LoseReply), delay: hit(f.opts.Delay), double: hit(f.opts.Double)}
	if f.opts.Late > 0 {
		drawn.calls = f.rand.IntN(f.opts.Late + 1)
	}
	if drawn.loseRequest || drawn.loseReply || drawn.delay || drawn.double {
		f.met++
	}
	f.mu.Unlock()
	for _, l := range due {
		l.delivery(ctx)
	}
	return drawn
}

// send keeps a request for later.
func (f *Faults) send(l late) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = append(f.late, l)
}

// Met is how many calls met a fault so far.
func (f *Faults) Met() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.met
}

// Settle delivers what is on its way, in the order in which it was sent.
func (f *Faults) Settle(ctx context.Context) { f.settle(ctx, func(late) bool { return true }) }

func (f *Faults) settle(ctx context.Context, which func(late) bool) {
	f.mu.Lock()
	var due []late
	f.late = slices.DeleteFunc(f.late, func(l late) bool {
		if which(l) {
			due = append(due, l)
		}
		return which(l)
	})
	f.mu.Unlock()
	for _, l := range due {
		l.delivery(ctx)
	}
}

// Claim implements driver.Store, with faults.
func (f *Faults) Claim(ctx context.Context, namespace string, claims []driver.Claim) []driver.Claimed {
	met := f.meet(ctx)
	lost := make([]driver.Claimed, len(claims))
	for i := range lost {
		lost[i].Err = ErrFault
	}
	again := func(claims []driver.Claim) func(context.Context) {
		return func(ctx context.Context) { f.Store.Claim(context.WithoutCancel(ctx), namespace, claims) }
	}
	switch {
	case met.loseRequest:
		return lost
	case met.delay:
		f.send(late{claims: true, delivery: again(slices.Clone(claims))})
		return lost
	}
	out := f.Store.Claim(ctx, namespace, claims)
	if met.double {
		var granted []driver.Claim
		for i := range out {
			if out[i].Err == nil && out[i].Answer.Granted() {
				granted = append(granted, claims[i])
			}
		}
		f.send(late{calls: met.calls, claims: true, delivery: again(granted)})
	}
	if met.loseReply {
		return lost
	}
	return out
}

// Apply implements driver.Store, with faults.
func (f *Faults) Apply(ctx context.Context, namespace string, transitions []driver.Transition) []driver.Applied {
	met := f.meet(ctx)
	lost := make([]driver.Applied, len(transitions))
	for i := range lost {
		lost[i].Err = ErrFault
	}
	again := func(transitions []driver.Transition) func(context.Context) {
		return func(ctx context.Context) { f.Store.Apply(context.WithoutCancel(ctx), namespace, transitions) }
	}
	switch {
	case met.loseRequest:
		return lost
	case met.delay:
		f.send(late{seals: true, delivery: again(copied(transitions))})
		return lost
	}
	out := f.Store.Apply(ctx, namespace, transitions)
	if met.double {
		var renewals, others []driver.Transition
		seals := false
		for i, t := range copied(transitions) {
			switch {
			case out[i].Err != nil || out[i].Outcome == driver.Refused:
			case t.Op == driver.Renew:
				renewals = append(renewals, t)
			default:
				others = append(others, t)
				seals = seals || t.Op == driver.Seal
			}
		}
		again(renewals)(ctx)
		f.send(late{calls: met.calls, seals: seals, delivery: again(others)})
	}
	if met.loseReply {
		return lost
	}
	return out
}

// copied shares no memory with the caller, who may go on using its own.
func copied(transitions []driver.Transition) []driver.Transition {
	out := slices.Clone(transitions)
	for i := range out {
		out[i].Receipt = bytes.Clone(out[i].Receipt)
		out[i].Steps = slices.Clone(out[i].Steps)
		for k := range out[i].Steps {
			out[i].Steps[k].Receipt = bytes.Clone(out[i].Steps[k].Receipt)
		}
	}
	return out
}

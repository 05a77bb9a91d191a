package consumer_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
	"github.com/oncefence/oncefence/effect"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

var errDead = errors.New("the process is dead")

// machine is a process that dies at a step: from then on nothing that it does
// reaches store, broker or sink, and nothing reaches it. It lies there until it
// is buried, so that its goroutines end with the test.
type machine struct {
	killAt int  // 0: never
	after  bool // the step itself is done, its answer lost
	// fault fails a step of a living machine: it is not done, or done and its
	// answer lost. Nil for never.
	fault func(what string) (drop, lose bool)

	mu     sync.Mutex
	steps  int
	at     string
	isDead bool
	dead   chan struct{}
	buried chan struct{}
}

func newMachine(killAt int, after bool) *machine {
	return &machine{killAt: killAt, after: after, dead: make(chan struct{}), buried: make(chan struct{})}
}

// die kills the machine now.
func (m *machine) die(at string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isDead {
		m.isDead, m.at = true, at
		close(m.dead)
	}
}

// count returns how many steps were made.
func (m *machine) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.steps
}

func (m *machine) alive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.isDead
}

// step does one thing that others can see and reports whether its answer came.
// A dead machine waits for its burial.
func (m *machine) step(what string, do func()) bool {
	drop, lose := false, false
	if m.fault != nil {
		drop, lose = m.fault(what)
	}
	m.mu.Lock()
	m.steps++
	here := m.steps == m.killAt
	m.mu.Unlock()
	if here && !m.after {
		m.die("before " + what)
	}
	if m.alive() && !drop {
		do()
	}
	if here {
		m.die("after " + what)
	}
	if m.alive() {
		return !drop && !lose
	}
	<-m.buried
	return false
}

// machineStore is the store as the machine sees it.
type machineStore struct {
	fencedriver.Store
	m *machine
}

func (s *machineStore) Claim(ctx context.Context, ns string, claims []fencedriver.Claim) (out []fencedriver.Claimed) {
	if !s.m.step("claim", func() { out = s.Store.Claim(ctx, ns, claims) }) {
		return failClaims(len(claims), errDead)
	}
	return out
}

func (s *machineStore) Apply(ctx context.Context, ns string, ts []fencedriver.Transition) (out []fencedriver.Applied) {
	if !s.m.step("apply "+ts[0].Op.String(), func() { out = s.Store.Apply(ctx, ns, ts) }) {
		return failApplies(len(ts), errDead)
	}
	return out
}

func (s *machineStore) Marker(ctx context.Context, ns string, update fencedriver.Marker) (out fencedriver.Marker, err error) {
	if !s.m.step("marker", func() { out, err = s.Store.Marker(ctx, ns, update) }) {
		return out, errDead
	}
	return out, err
}

// machineSource is the broker as the machine sees it.
type machineSource struct {
	*memsource.Source
	m *machine
}

func (s *machineSource) Poll(ctx context.Context, limit int) ([]driver.Batch, error) {
	batches, err := s.Source.Poll(ctx, limit)
	if !s.m.step("poll", func() {}) {
		return nil, errDead
	}
	return batches, err
}

func (s *machineSource) Commit(ctx context.Context, offsets []driver.Offset) (errs []error) {
	if !s.m.step("commit", func() { errs = s.Source.Commit(ctx, offsets) }) {
		errs = make([]error, len(offsets))
		for i := range errs {
			errs[i] = errDead
		}
	}
	return errs
}

type machineProducer struct {
	driver.Producer
	m *machine
}

func (p *machineProducer) Produce(ctx context.Context, records []driver.Record) (errs []error) {
	if !p.m.step("produce to "+records[0].Topic, func() { errs = p.Producer.Produce(ctx, records) }) {
		errs = make([]error, len(records))
		for i := range errs {
			errs[i] = errDead
		}
	}
	return errs
}

// effect runs f with steps around it: f's answer is what the sink said.
func (m *machine) effect(f effect.Func) effect.Func {
	return func(ctx context.Context, in effect.Input) (r effect.Receipt, err error) {
		if !m.step("effect begins", func() {}) {
			return r, errDead
		}
		time.Sleep(time.Millisecond)
		if !m.step("effect applies", func() { r, err = f(ctx, in) }) {
			return effect.Receipt{}, errDead
		}
		return r, err
	}
}

func (m *machine) probe(f effect.Probe) effect.Probe {
	return func(ctx context.Context, in effect.Input) (found effect.Finding, err error) {
		if !m.step("probe", func() { found, err = f(ctx, in) }) {
			return effect.Finding{}, errDead
		}
		return found, err
	}
}

package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/internal/fault"
)

// errGoexit is the outcome of an effect that ended its goroutine.
var errGoexit = errors.New("the effect ended its goroutine (runtime.Goexit) without an outcome")

// quick is the effect duration below which a worker takes several items at
// once and reports them together.
const (
	quick     = 50 * time.Microsecond
	takeQuick = 16
)

// slot is one worker, as the loop's sweep sees it. pool.mu is taken before mu.
type slot struct {
	current  atomic.Pointer[effectContext]
	mu       sync.Mutex
	rest     []*item // taken and not started; the sweep gives them to others
	finished []*item // run and not reported; the sweep reports them
}

func (s *slot) keep(items []*item) {
	s.mu.Lock()
	s.rest = append(s.rest[:0], items...)
	s.mu.Unlock()
}

func (s *slot) next() *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) == 0 {
		return nil
	}
	it := s.rest[0]
	s.rest = s.rest[1:]
	return it
}

// finish keeps an item that has run until it is reported, and says how many
// there are.
func (s *slot) finish(it *item) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = append(s.finished, it)
	return len(s.finished)
}

// pool runs effects. Its queue and results are guarded by mu; items belong to a
// worker from take to done.
type pool struct {
	effect  effect.Effect
	parent  context.Context //nolint:containedctx // the root of the effects' contexts
	input   func(*item) effect.Input
	results chan struct{} // one token when done has items

	mu      sync.Mutex
	wake    *sync.Cond
	queue   []*item
	head    int
	done    []*item
	taken   int // items that a worker has
	idle    int // workers that have none
	closed  bool
	slots   map[*slot]bool
	workers sync.WaitGroup
}

func newPool(parent context.Context, e effect.Effect, workers int, input func(*item) effect.Input) *pool {
	p := &pool{effect: e, parent: parent, input: input, results: make(chan struct{}, 1), slots: make(map[*slot]bool)}
	p.wake = sync.NewCond(&p.mu)
	for range workers {
		p.spawn()
	}
	return p
}

func (p *pool) spawn() {
	s := &slot{}
	p.mu.Lock()
	p.slots[s] = true
	p.idle++
	p.mu.Unlock()
	p.workers.Add(1)
	go p.work(s)
}

// push appends items whose turn it is.
func (p *pool) push(items ...*item) {
	p.mu.Lock()
	p.queue = append(p.queue, items...)
	p.mu.Unlock()
	if len(items) == 1 {
		p.wake.Signal()
	} else {
		p.wake.Broadcast()
	}
}

// remove takes out the items that no worker has taken and for which drop
// answers true.
func (p *pool) remove(drop func(*item) bool) (removed []*item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.queue[:0]
	for _, it := range p.queue[p.head:] {
		if drop(it) {
			removed = append(removed, it)
		} else {
			kept = append(kept, it)
		}
	}
	clear(p.queue[len(kept):])
	p.queue, p.head = kept, 0
	return removed
}

// load returns how many items wait and how many workers have.
func (p *pool) load() (waiting, taken int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue) - p.head, p.taken
}

// room returns how many more items workers could start at once.
func (p *pool) room() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idle*p.effect.MaxBatch() - (len(p.queue) - p.head)
}

// rest says that a worker has no items any more.
func (p *pool) rest() {
	p.mu.Lock()
	p.idle++
	p.mu.Unlock()
}

// take waits for items and moves up to limit of them to buf.
func (p *pool) take(buf []*item, limit int) []*item {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.head == len(p.queue) && !p.closed {
		p.wake.Wait()
	}
	n := min(limit, len(p.queue)-p.head)
	if limit > 1 && n > 1 && !p.effect.IsBatch() { // leave some for the others
		n = min(n, max(1, (len(p.queue)-p.head)/2))
	}
	for range n {
		it := p.queue[p.head]
		if len(buf) > 0 && (it.alone || it.probe != buf[0].probe) {
			break
		}
		buf = append(buf, it)
		p.queue[p.head] = nil
		p.head++
		if it.alone {
			break
		}
	}
	p.taken += len(buf)
	p.idle--
	if p.head == len(p.queue) {
		p.queue, p.head = p.queue[:0], 0
	}
	return buf
}

// report hands items back to the loop.
func (p *pool) report(items []*item) {
	if len(items) == 0 {
		return
	}
	p.mu.Lock()
	p.done = append(p.done, items...)
	p.taken -= len(items)
	p.mu.Unlock()
	p.signal()
}

// collect returns what was reported; buf is used again.
func (p *pool) collect(buf []*item) []*item {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := p.done
	p.done = buf[:0]
	return done
}

// close lets the workers end when the queue is empty.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.wake.Broadcast()
}

// running returns the contexts of the effects that run now.
func (p *pool) running(buf []*effectContext) []*effectContext {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.slots {
		if c := s.current.Load(); c != nil {
			buf = append(buf, c)
		}
	}
	return buf
}

// unstick gives what waits behind an effect that runs for longer than patience
// back to the queue, and reports what has run before it.
func (p *pool) unstick(now time.Time, patience time.Duration) {
	p.mu.Lock()
	for s := range p.slots {
		if c := s.current.Load(); c != nil && now.Sub(c.started) >= patience {
			p.free(s)
		}
	}
	p.mu.Unlock()
	p.wake.Broadcast()
}

// free takes everything from a worker but what it runs. mu is held.
func (p *pool) free(s *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.rest); n > 0 {
		p.queue = append(append([]*item(nil), s.rest...), p.queue[p.head:]...)
		p.head, p.taken, s.rest = 0, p.taken-n, nil
	}
	p.reported(s)
}

// reported moves what has run to done. mu and the slot's are held.
func (p *pool) reported(s *slot) {
	if len(s.finished) == 0 {
		return
	}
	p.done = append(p.done, s.finished...)
	p.taken -= len(s.finished)
	clear(s.finished)
	s.finished = s.finished[:0]
	p.signal()
}

// flush reports what a worker has run.
func (p *pool) flush(s *slot) {
	p.mu.Lock()
	s.mu.Lock()
	p.reported(s)
	s.mu.Unlock()
	p.mu.Unlock()
}

func (p *pool) signal() {
	select {
	case p.results <- struct{}{}:
	default:
	}
}

// replace starts a worker in the place of one that is stuck in c. The items of
// c no longer count as taken. It reports false if the effect has returned.
func (p *pool) replace(c *effectContext) bool {
	p.mu.Lock()
	found := false
	for s := range p.slots {
		if s.current.Load() == c {
			p.free(s)
			delete(p.slots, s)
			found = true
		}
	}
	if found {
		c.orphan = true
		p.taken -= len(c.items)
	}
	p.mu.Unlock()
	if found {
		p.spawn()
	}
	return found
}

func (p *pool) work(s *slot) {
	defer p.workers.Done()
	var current *effectContext
	returned := false
	defer func() {
		if !returned && current != nil {
			p.goexit(s, current)
		}
	}()
	var buf []*item
	limit := 1
	if p.effect.IsBatch() {
		limit = p.effect.MaxBatch()
	}
	for {
		buf = p.take(buf[:0], limit)
		if len(buf) == 0 {
			returned = true
			p.leave(s, nil)
			return
		}
		now := time.Now()
		if p.effect.IsBatch() && !buf[0].probe {
			current = p.context(append([]*item(nil), buf...), now)
			s.current.Store(current)
			p.runBatch(current, now)
			if !p.leave(s, current) {
				returned = true
				p.reportOrphan(current)
				return
			}
			p.report(current.items)
			p.rest()
			current = nil
			continue
		}
		start, ran := now, 0
		s.keep(buf)
		for it := s.next(); it != nil; it = s.next() {
			ran++
			current = p.context([]*item{it}, start)
			s.current.Store(current)
			p.run(current, it, start)
			end := time.Now()
			it.took = end.Sub(start)
			if !p.leave(s, current) {
				returned = true
				p.reportOrphan(current)
				return
			}
			current = nil
			if n := s.finish(it); it.took > quick || n >= takeQuick {
				p.flush(s)
			}
			start = end
		}
		p.flush(s)
		p.rest()
		if per := start.Sub(now) / time.Duration(max(ran, 1)); per < quick {
			limit = takeQuick
		} else {
			limit = 1
		}
	}
}

// goexit ends a worker whose effect or probe ended its goroutine, and starts
// another one in its place.
func (p *pool) goexit(s *slot, c *effectContext) {
	for _, it := range c.items {
		it.outcome, it.finding = effect.Outcome{Err: errGoexit}, effect.CannotSay()
		it.class, it.took = effect.ClassUnknown, time.Since(c.started)
	}
	p.mu.Lock()
	p.free(s)
	p.mu.Unlock()
	if !p.leave(s, c) {
		p.reportOrphan(c)
		return
	}
	p.leave(s, nil)
	p.report(c.items)
	p.spawn()
}

func (p *pool) context(items []*item, now time.Time) *effectContext {
	return &effectContext{parent: p.parent, items: items, started: now, deadline: now.Add(p.effect.MaxRunTime()), isProbe: items[0].probe}
}

// leave ends the effect's context and reports whether the worker still counts.
func (p *pool) leave(s *slot, c *effectContext) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.current.Store(nil)
	if c == nil {
		delete(p.slots, s)
		return true
	}
	if !c.orphan {
		c.release()
	}
	return !c.orphan
}

// reportOrphan hands back items that were given up; they do not count as taken.
func (p *pool) reportOrphan(c *effectContext) {
	p.mu.Lock()
	p.taken += len(c.items)
	p.mu.Unlock()
	p.report(c.items)
}

// start reports whether the effect may be called now. After it, it counts as
// called.
func (p *pool) start(it *item, now time.Time) bool {
	if it.part.halted.Load() {
		return false
	}
	if it.hold != nil {
		if !it.hold.Live(now) {
			return false
		}
		it.hold.Started(now, p.effect.MaxRunTime())
	}
	it.called = true
	if !it.probe {
		it.ran = true
	}
	return true
}

func (p *pool) run(c *effectContext, it *item, now time.Time) {
	if !p.start(it, now) {
		it.class = effect.ClassUnknown
		return
	}
	if it.probe {
		var err error
		it.finding, err = p.effect.Ask(c, p.input(it))
		if err != nil {
			it.finding, it.cause = effect.CannotSay(), fmt.Errorf("probe: %w", err)
		}
		return
	}
	fault.Point(fault.EffectBefore)
	it.outcome = p.effect.Run(c, p.input(it))
	fault.Point(fault.EffectAfter)
	it.class, it.delay = effect.Classify(it.outcome.Err)
}

func (p *pool) runBatch(c *effectContext, now time.Time) {
	started := make([]*item, 0, len(c.items))
	inputs := make([]effect.Input, 0, len(c.items))
	for _, it := range c.items {
		if p.start(it, now) {
			started = append(started, it)
			inputs = append(inputs, p.input(it))
		}
	}
	if len(started) == 0 {
		return
	}
	fault.Point(fault.EffectBefore)
	outcomes := p.effect.RunBatch(c, inputs)
	fault.Point(fault.EffectAfter)
	took := time.Since(now)
	for i, it := range started {
		it.outcome, it.took = outcomes[i], took
		it.class, it.delay = effect.Classify(it.outcome.Err)
	}
}

package chaos

import (
	"context"
	"errors"
	"time"
)

// event is something that happens to members or servers.
type event struct {
	name   string
	weight int
	do     func(ctx context.Context, r *run) error
}

var events = []event{
	{"members killed", 30, func(_ context.Context, r *run) error {
		r.anySlot().kill()
		return nil
	}},
	{"members paused past the lease", 16, func(_ context.Context, r *run) error {
		// Up to past the session too: others take the partitions over.
		return r.background(r.between(1200*time.Millisecond, 5*time.Second), func(s *slot, d time.Duration) error { return s.pause(d) })
	}},
	{"members stopped and started", 10, func(_ context.Context, r *run) error {
		r.anySlot().cycle()
		return nil
	}},
	{"members added and removed", 10, func(ctx context.Context, r *run) error { return r.visit(ctx) }},
	{"redis killed and started", 6, func(ctx context.Context, r *run) error {
		if err := r.redis.kill(); err != nil {
			return err
		}
		r.sleep(ctx, r.between(100*time.Millisecond, 3*time.Second))
		return r.redis.start()
	}},
	{"redis connections dropped", 8, func(_ context.Context, r *run) error {
		r.proxy.drop()
		return nil
	}},
	{"redis connections half-closed", 6, func(_ context.Context, r *run) error {
		r.proxy.halfClose()
		return nil
	}},
	{"redis replies eaten", 12, func(ctx context.Context, r *run) error {
		r.proxy.set(func(p *proxy) { p.eat = 1 + r.random.IntN(4) })
		r.sleep(ctx, time.Second)
		r.proxy.heal()
		return nil
	}},
	{"redis slow", 6, func(ctx context.Context, r *run) error {
		r.proxy.set(func(p *proxy) { p.delay = r.between(20*time.Millisecond, 400*time.Millisecond) })
		r.sleep(ctx, r.between(time.Second, 3*time.Second))
		r.proxy.heal()
		return nil
	}},
	{"redis silent", 4, func(ctx context.Context, r *run) error {
		r.proxy.set(func(p *proxy) { p.silent = true })
		r.sleep(ctx, r.between(500*time.Millisecond, 4*time.Second))
		r.proxy.heal()
		return nil
	}},
	{"brokers killed and started", 6, func(ctx context.Context, r *run) error { return r.restartBroker(ctx, (*server).kill) }},
	{"brokers stopped and started", 4, func(ctx context.Context, r *run) error { return r.restartBroker(ctx, (*server).stop) }},
}

// draw picks an event by weight.
func (r *run) draw() event {
	sum := 0
	for _, e := range events {
		sum += e.weight
	}
	at := r.random.IntN(sum)
	for _, e := range events {
		if at -= e.weight; at < 0 {
			return e
		}
	}
	panic("unreachable: the weights add up")
}

func (r *run) anySlot() *slot {
	p := r.parties[r.random.IntN(len(r.parties))]
	return p.slots[r.random.IntN(len(p.slots))]
}

func (r *run) between(from, to time.Duration) time.Duration {
	return from + time.Duration(r.random.Int64N(int64(to-from)))
}

func (r *run) sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// background does something with a member while other events go on; never two
// things with one member at a time.
func (r *run) background(d time.Duration, do func(*slot, time.Duration) error) error {
	s := r.anySlot()
	if _, busy := r.busy.LoadOrStore(s, true); busy {
		return nil
	}
	r.behind.Go(func() {
		defer r.busy.Delete(s)
		if err := do(s, d); err != nil {
			r.failed(err)
		}
	})
	return nil
}

// visit adds a dynamic member to a group, and takes it out again later.
func (r *run) visit(ctx context.Context) error {
	p := r.parties[r.random.IntN(len(r.parties))]
	r.visitors++
	s := p.slot(r.Program, p.name+"-visitor-"+time.Duration(r.visitors).String(), false)
	d := r.between(2*time.Second, 6*time.Second)
	s.run()
	r.behind.Go(func() {
		r.sleep(ctx, d)
		if !s.stop() {
			_, log := s.said()
			r.failed(errors.New(s.name + " did not stop:\n" + log))
		}
		r.left(s)
	})
	return nil
}

// restartBroker ends one broker and starts it again. The next one goes only when
// all replicas are back.
func (r *run) restartBroker(ctx context.Context, end func(*server) error) error {
	if !r.healthy(ctx) {
		return errSkipped
	}
	b := r.brokers[r.random.IntN(len(r.brokers))]
	if err := end(b); err != nil {
		return err
	}
	r.sleep(ctx, r.between(500*time.Millisecond, 3*time.Second))
	return b.start()
}

// errSkipped: the event did not happen and is not counted.
var errSkipped = errors.New("not now")

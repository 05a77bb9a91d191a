package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/oncefence/oncefence/test/servers"
	"github.com/oncefence/oncefence/test/sweep/account"
)

// catchUpWithin is how long a group may take for what is left after the storm.
const catchUpWithin = 90 * time.Second

// Options of a run.
type Options struct {
	// Program is a member, see member.Build.
	Program string
	// Seed decides the order of events and the lines.
	Seed uint64
	// Calm is how long members are only killed, to measure takeovers; Storm is
	// how long everything happens. Both must be positive.
	Calm, Storm time.Duration
	// Progress gets a line for each event; nil for none.
	Progress io.Writer
}

// Report is what a run came to.
type Report struct {
	Events   map[string]int
	Tallies  map[string]account.Tally
	Figures  map[string]Figures
	Emptied  Emptied
	SelfEnds map[string]int // members that ended by themselves, by what they said
	Eaten    int
}

// run is a run under way.
type run struct {
	Options
	random   *rand.Rand
	proxy    *proxy
	redis    *server
	brokers  []*server
	parties  []*party
	busy     sync.Map
	behind   sync.WaitGroup
	visitors int
	began    time.Time

	mu     sync.Mutex
	errs   []error
	report Report
}

func (r *run) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

func (r *run) say(format string, args ...any) {
	if r.Progress != nil {
		fmt.Fprintf(r.Progress, "%6.1f s  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
	}
}

// Run starts servers and members, lets the storm pass, and accounts for every
// line. It returns what could not be done as an error, servers.ErrMissing when
// programs are missing; what broke the promise stands in the report.
func Run(ctx context.Context, o Options) (rep Report, err error) {
	if o.Calm <= 0 || o.Storm <= 0 {
		return rep, fmt.Errorf("chaos: Calm is %v and Storm %v: both must be positive", o.Calm, o.Storm)
	}
	r := &run{Options: o, random: rand.New(rand.NewPCG(o.Seed, 3)), began: time.Now()} //nolint:gosec // replayed by its seed
	r.report = Report{Events: make(map[string]int), Tallies: make(map[string]account.Tally), Figures: make(map[string]Figures), SelfEnds: make(map[string]int)}
	kafka, err := servers.StartKafka(ctx, &servers.KafkaOptions{From: servers.Program, Own: true, Brokers: 3})
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, kafka.Close()) }()
	redis, err := servers.StartRedis(ctx, &servers.RedisOptions{From: servers.Program, Args: []string{"--set-proc-title", "no"}})
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	if r.proxy, err = startProxy(redis.Addr()); err != nil {
		return rep, err
	}
	defer r.proxy.close()
	if r.brokers, err = findServers("kafka broker", "kafka.Kafka"); err != nil {
		return rep, err
	}
	found, err := findServers("redis", "--set-proc-title")
	if err != nil {
		return rep, err
	}
	r.redis = found[0]
	defer func() {
		for _, s := range append(r.brokers, r.redis) {
			err = errors.Join(err, s.close())
		}
	}()
	err = r.play(ctx, kafka.Brokers(), redis.Addr())
	for _, p := range r.parties {
		for _, s := range p.slots {
			if s.over != nil {
				s.stop()
			}
		}
		err = errors.Join(err, p.close(context.WithoutCancel(ctx)))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report, errors.Join(append(r.errs, err)...)
}

func (r *run) play(ctx context.Context, brokers []string, redisAddr string) error {
	fence := "redis://" + r.proxy.addr() + "/0"
	runID := fmt.Sprintf("%x", time.Now().UnixNano())
	for i, kind := range []string{"idempotent", "probed", "at-most-once", "idempotent"} {
		p, err := openParty(ctx, brokers, fence, runID, kind, i == 3, r.Seed+10*uint64(i))
		r.parties = append(r.parties, p)
		if err != nil {
			return err
		}
		for n := range perParty {
			p.slots = append(p.slots, p.slot(r.Program, fmt.Sprintf("%s-%d", p.name, n), true))
		}
	}
	feeding, stopFeeding := context.WithCancel(ctx)
	var feeds sync.WaitGroup
	for _, p := range r.parties {
		feeds.Go(func() {
			if err := p.feed(feeding); err != nil {
				r.failed(err)
			}
		})
		for _, s := range p.slots {
			s.run()
		}
	}
	r.sleep(ctx, 3*time.Second)
	r.calm(ctx)
	r.storm(ctx)
	stopFeeding()
	feeds.Wait()
	r.behind.Wait()
	r.proxy.heal()
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	if err := r.account(ctx); err != nil {
		return err
	}
	return r.empty(ctx, redisAddr)
}

// calm kills members one after the other and does nothing else.
func (r *run) calm(ctx context.Context) {
	for until := time.Now().Add(r.Calm); time.Now().Before(until) && ctx.Err() == nil; {
		p := r.parties[r.random.IntN(len(r.parties))]
		s := p.slots[r.random.IntN(len(p.slots))]
		// A death that leaves nothing measures nothing.
		if within(ctx, 3*time.Second, func() bool { return p.watch.Holds(s.name) }) != nil {
			continue
		}
		s.kill()
		r.report.Events["members killed"]++
		r.say("killed %s", s.name)
		r.sleep(ctx, r.between(time.Second, 2*time.Second))
	}
	r.sleep(ctx, 3*time.Second)
	for _, p := range r.parties {
		f := r.report.Figures[p.name]
		f.TakenOver, f.Resolved = p.watch.Samples()
		r.report.Figures[p.name] = f
	}
}

// storm lets everything happen; each event at least once, before they are drawn.
func (r *run) storm(ctx context.Context) {
	first := r.random.Perm(len(events))
	for until := time.Now().Add(r.Storm); (time.Now().Before(until) || len(first) > 0) && ctx.Err() == nil; {
		e := r.draw()
		if len(first) > 0 {
			e, first = events[first[0]], first[1:]
		}
		began := time.Now()
		err := e.do(ctx, r)
		switch {
		case errors.Is(err, errSkipped):
			continue
		case err != nil:
			r.failed(fmt.Errorf("%s: %w", e.name, err))
		}
		r.report.Events[e.name]++
		r.say("%s, %.1f s", e.name, time.Since(began).Seconds())
		r.sleep(ctx, r.between(300*time.Millisecond, 1500*time.Millisecond))
	}
}

// catchUp waits until every group has committed all there is.
func (r *run) catchUp(ctx context.Context) error {
	for _, p := range r.parties {
		err := within(ctx, catchUpWithin, func() bool { return p.broker.CaughtUp(ctx) })
		if err != nil {
			behind := p.broker.Behind(ctx)
			var said []string
			for _, s := range p.slots {
				if proc := s.process(); proc != nil {
					proc.AskHealth()
					r.sleep(ctx, 500*time.Millisecond)
				}
				_, log := s.said()
				said = append(said, s.name+":\n"+log)
			}
			return fmt.Errorf("%s has not caught up: %w: %s\n%s", p.name, err, behind, strings.Join(said, "\n"))
		}
		r.say("%s has caught up", p.name)
	}
	return nil
}

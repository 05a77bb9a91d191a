package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/test/sweep/account"
)

// Emptied is what followed when Redis was emptied.
type Emptied struct {
	// Stopped is how long members that ran went on until all had stopped with the
	// epoch's error.
	Stopped time.Duration
	// Repeated are effects that they applied again meanwhile: of lines that were
	// sent again, whose receipts were gone.
	Repeated int
	// Refused members, started afterwards, that stopped before any effect.
	Refused int
	// Applied are effects that these applied all the same.
	Applied int
}

// empty takes everything out of Redis, under members that run and while none
// does: both must stop, and say why.
func (r *run) empty(ctx context.Context, redisAddr string) error {
	client := redis.NewClient(&redis.Options{Addr: redisAddr})
	defer client.Close()
	var running *party
	for _, p := range r.parties {
		if p.name == "at-most-once" {
			running = p
		}
	}
	before := len(running.ledger.Twice())
	s := running.slot(r.Program, running.name+"-last", true)
	s.single = true
	s.run()
	again := running.done()
	if err := running.broker.Send(ctx, again); err != nil {
		return err
	}
	if err := within(ctx, time.Minute, func() bool { return running.broker.CaughtUp(ctx) }); err != nil {
		return fmt.Errorf("before Redis was emptied: %w", err)
	}
	if err := client.FlushAll(ctx).Err(); err != nil {
		return err
	}
	r.say("redis emptied")
	began := time.Now()
	ended := false
	for !ended && time.Since(began) < time.Minute {
		if err := running.broker.Send(ctx, again); err != nil {
			return err
		}
		select {
		case <-s.over:
			ended = true
		case <-time.After(200 * time.Millisecond):
		}
	}
	r.report.Emptied.Stopped, r.report.Emptied.Repeated = time.Since(began), len(running.ledger.Twice())-before
	if ends, log := s.said(); !ended || len(ends) != 1 || !strings.Contains(ends[0], "epoch") {
		return fmt.Errorf("emptied Redis and a member that ran did not stop with the epoch's error: %q\n%s", ends, log)
	}
	for _, p := range r.parties {
		requests := p.ledger.Stats().Requests
		s := p.slot(r.Program, p.name+"-0", true)
		s.single = true
		s.run()
		select {
		case <-s.over:
		case <-time.After(time.Minute):
			s.stop()
			return fmt.Errorf("%s: a member works with a Redis that was emptied", p.name)
		}
		if ends, log := s.said(); len(ends) != 1 || !strings.Contains(ends[0], "epoch") {
			return fmt.Errorf("%s: started on a Redis that was emptied, a member did not stop with the epoch's error: %q\n%s", p.name, ends, log)
		}
		r.report.Emptied.Refused++
		r.report.Emptied.Applied += p.ledger.Stats().Requests - requests
	}
	return nil
}

// done returns some lines whose orders are booked, as they were sent.
func (p *party) done() (lines []account.Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := make(map[string]bool)
	for _, l := range p.lines {
		if l.Order != "" && p.ledger.Booked(l.Order) == 1 && !seen[l.Order] && !strings.Contains(string(l.Value), "do") {
			seen[l.Order] = true
			lines = append(lines, account.Line{Order: l.Order, Key: l.Key, Value: l.Value})
		}
		if len(lines) == 20 {
			break
		}
	}
	return lines
}

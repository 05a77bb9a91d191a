package chaos

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/test/sweep/ledger"
	"github.com/oncefence/oncefence/test/sweep/member"
)

// Figures of one group beside its tally.
type Figures struct {
	Kills      int
	Rebalances int // times that partitions were assigned
	Revoked    int
	Lost       int // times that partitions were lost without having been revoked
	LateSeals  int
	LostClaims int
	Unknown    int // effects that ended without a word
	InDoubt    int // claims answered so
	Aborted    int // lines in aborted transactions, none applied
	Unsure     int // lines in transactions whose commit had no answer: not accounted for
	Sink       ledger.Stats
	// TakenOver and Resolved are measured in the calm.
	TakenOver, Resolved []time.Duration
}

// account stops the members and works out what became of the lines.
func (r *run) account(ctx context.Context) error {
	for _, p := range r.parties {
		f := r.report.Figures[p.name]
		for _, s := range p.slots {
			if !s.stop() {
				_, log := s.said()
				return fmt.Errorf("%s did not stop:\n%s", s.name, log)
			}
			f.Kills += s.kills
			r.left(s)
		}
		t, err := p.account(ctx)
		if err != nil {
			return err
		}
		r.report.Tallies[p.name] = t
		f.Rebalances, f.Revoked, f.Lost = p.watch.Count(member.Assigned), p.watch.Count(member.Revoked), p.watch.Count(member.Lost)
		f.LateSeals, f.LostClaims = p.watch.Count(consumer.DecisionLateSeal), p.watch.Count(consumer.DecisionLostClaim)
		f.Unknown, f.InDoubt = p.watch.Count(consumer.DecisionUnknown), p.watch.Count(consumer.DecisionInDoubt)
		f.Aborted, f.Unsure, f.Sink = len(p.aborted), p.unsure, p.ledger.Stats()
		r.report.Figures[p.name] = f
	}
	r.report.Eaten = r.proxy.eaten
	return nil
}

// digits and what surrounds them differ from one end to the next.
var digits = regexp.MustCompile(`\d[\d.:a-f-]*`)

// left keeps what members said that ended by themselves.
func (r *run) left(s *slot) {
	ends, _ := s.said()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, said := range ends {
		r.report.SelfEnds[digits.ReplaceAllString(said, "#")]++
	}
}

// healthy reports whether all brokers are there and all replicas in sync.
func (r *run) healthy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var admin *kadm.Client
	if len(r.parties) > 0 {
		admin = r.parties[0].broker.Admin
		meta, err := admin.Metadata(ctx)
		if err != nil || len(meta.Brokers) < len(r.brokers) {
			return false
		}
		for _, topic := range meta.Topics {
			for _, partition := range topic.Partitions {
				if partition.Err != nil || len(partition.ISR) < len(r.brokers) {
					return false
				}
			}
		}
	}
	return true
}

// until waits at most a minute for something.
func until(done func() bool) error { return within(context.Background(), time.Minute, done) }

func within(ctx context.Context, limit time.Duration, done func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !done(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if time.Now().After(end) {
			return errors.New("not within " + limit.String())
		}
	}
	return nil
}

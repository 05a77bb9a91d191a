package fencetest

import (
	"fmt"
)

// never turns a fault off.
const never = -1

// faultRules: a history behind a bad network ends as the same one without.
var faultRules = func() []Rule {
	cases := []struct {
		name, says string
		opts       FaultyOptions
	}{
		{"lost-reply", "replies get lost", FaultyOptions{LoseRequest: never, LoseReply: 0.3, Delay: never, Double: never}},
		{"delayed", "requests arrive after their sender gave them up", FaultyOptions{LoseRequest: never, LoseReply: never, Delay: 0.3, Double: never}},
		{"doubled", "requests that took effect arrive twice, the second time also after later ones", FaultyOptions{LoseRequest: never, LoseReply: never, Delay: never, Double: 0.6}},
		{"all", "requests and replies get lost, are late and double", FaultyOptions{LoseRequest: 0.15, LoseReply: 0.15, Delay: 0.15, Double: 0.5}},
	}
	var out []Rule
	for _, c := range cases {
		out = append(out, Rule{
			Name: "faults/" + c.name, Says: "when " + c.says + ", and what got no answer is sent again unchanged, every answer and record is the one of a quiet network",
			check: func(s *scene) { s.faults(c.opts) },
		})
	}
	return out
}()

// faults plays random histories on a quiet and on a bad network.
func (s *scene) faults(opts FaultyOptions) {
	histories, moves := 3, 25 // waiting costs time
	if s.h.FreeTime {
		histories, moves = 10, 120
	}
	met := 0
	for seed := range histories {
		opts.Seed = uint64(seed)
		history := RandomHistory(opts.Seed, moves)
		stage := Stage{Store: s.store, Namespace: fmt.Sprintf("%s%da", s.space, seed), Pass: s.h.Pass, Lease: s.h.Lease}
		quiet, err := Play(s.ctx, stage, history)
		s.want(err == nil, "history of seed %d without faults: %w", seed, err)
		bad := Faulty(s.store, opts)
		stage.Store, stage.Namespace, stage.Resend = bad, fmt.Sprintf("%s%db", s.space, seed), 100
		faulty, err := Play(s.ctx, stage, history)
		s.want(err == nil, "history of seed %d with faults: %w", seed, err)
		if err := Compare(quiet, faulty); err != nil {
			s.failf("history of seed %d, without and with faults: %w\n%v", seed, err, history)
		}
		met += bad.Met()
	}
	s.want(met > 0, "no fault was met")
}

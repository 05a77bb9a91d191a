package fencetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// Stage is where a history is played.
type Stage struct {
	Store driver.Store
	// Namespace is one that was not used before.
	Namespace string
	// Pass lets the store's time pass, see Harness.
	Pass func(ctx context.Context, d time.Duration) error
	// Lease is the length of limits that end, see Harness.
	Lease time.Duration
	// Resend is how often a batch that got no answer is sent again, unchanged,
	// as fence.Fence would; 0 is never.
	Resend int
}

// Line is one answer of a play, in words that are the same on every store.
type Line struct {
	// What names the move and the item.
	What string
	// Answer is the answer or outcome.
	Answer string
	// Record is the record that came with it, or that get or scan showed.
	Record string
	// Resent says that an earlier answer may have been lost.
	Resent bool
}

// Play plays a history and answers what the store said, and what it holds
// after each move. An error is one of the store that sending again did not
// mend, or a token that did not grow.
func Play(ctx context.Context, stage Stage, history History) ([]Line, error) {
	p := &player{ctx: ctx, stage: stage}
	all := make([]int, HistoryKeys)
	for i := range p.keys {
		all[i] = i
		p.keys[i] = &keyPlay{digest: digestOf(stage.Namespace, i), tokens: map[uint64]int{0: 0, strangeToken: -1}, nonces: map[driver.Nonce]int{{}: 0}}
	}
	for i, m := range history {
		if err := p.move(fmt.Sprint("move ", i), m); err != nil {
			return p.lines, fmt.Errorf("move %d (%s): %w", i, m, err)
		}
	}
	p.settle(func(late) bool { return true })
	if err := p.get("at the end", all); err != nil {
		return p.lines, err
	}
	return p.lines, p.scan("at the end", driver.Filter{})
}

// Compare says at which line two plays of one history differ. An outcome that
// only says that a transition was applied before counts as that outcome if the
// answer may have been lost.
func Compare(a, b []Line) error {
	for i := range min(len(a), len(b)) {
		resent := a[i].Resent || b[i].Resent
		applied := resent && wrote(a[i].Answer) && wrote(b[i].Answer)
		switch {
		case a[i].What != b[i].What:
			return fmt.Errorf("line %d is %q and %q", i, a[i].What, b[i].What)
		case a[i].Answer != b[i].Answer && !applied:
			return fmt.Errorf("%s: %s and %s\n  with %s\n  and  %s", a[i].What, a[i].Answer, b[i].Answer, a[i].Record, b[i].Record)
		case a[i].Record != b[i].Record && !applied:
			return fmt.Errorf("%s: %s with\n       %s\n  and  %s", a[i].What, a[i].Answer, a[i].Record, b[i].Record)
		}
	}
	if len(a) != len(b) {
		return fmt.Errorf("%d and %d lines", len(a), len(b))
	}
	return nil
}

func wrote(answer string) bool {
	return slices.Contains([]string{driver.OK.String(), driver.Repeated.String(), driver.Vanished.String(), driver.Late.String()}, answer)
}

type player struct {
	ctx   context.Context
	stage Stage
	keys  [HistoryKeys]*keyPlay
	lines []Line
}

// settle lets late doubles arrive where the store is a Faults.
func (p *player) settle(which func(late) bool) {
	if f, ok := p.stage.Store.(*Faults); ok {
		f.settle(p.ctx, which)
	}
}

func (p *player) move(what string, m Move) error {
	var touched []int
	ends := false
	for _, item := range m.Items {
		touched = append(touched, item.Key)
		ends = ends || item.Ends
		// One release is kept, in the record. A double of the claim that was
		// released must have come before the next thing happens to the key; in
		// earnest the time that the claim names sees to that.
		if p.keys[item.Key].released {
			p.settle(func(l late) bool { return l.claims })
		}
	}
	var err error
	switch m.Verb {
	case MoveClaim:
		err = p.claim(what, m.Items)
	case MoveApply:
		err = p.apply(what, m.Items)
	case MoveScan:
		return p.scan(what, m.Filter)
	case MovePurge:
		_, err = p.stage.Store.Purge(p.ctx, p.stage.Namespace, 100)
	case MoveMarker:
		err = p.marker(what, m.Marker)
	}
	if err == nil && ends {
		// Likewise a claim does not come after a lease, nor a seal after the
		// retention of its record.
		p.settle(func(l late) bool { return l.claims || l.seals })
		err = p.stage.Pass(p.ctx, p.stage.Lease+time.Millisecond)
	}
	if err != nil || len(touched) == 0 {
		return err
	}
	return p.get(what+", then", touched)
}

// unanswered reports an error that sending again may mend.
func unanswered(err error) bool {
	return err != nil && !errors.Is(err, driver.ErrTooLate) && !errors.Is(err, driver.ErrReleased)
}

func (p *player) claim(what string, items []Item) error {
	claims := make([]driver.Claim, len(items))
	for i, item := range items {
		claims[i] = p.keys[item.Key].ask(item, p.stage.Lease)
	}
	out, resent, err := resend(p.stage.Resend, claims, func(batch []driver.Claim) []driver.Claimed {
		return p.stage.Store.Claim(p.ctx, p.stage.Namespace, batch)
	}, func(c driver.Claimed) error { return c.Err })
	if err != nil {
		return err
	}
	for i, c := range out {
		k, item := p.keys[items[i].Key], items[i]
		if err := k.answered(claims[i], c, item); err != nil {
			return err
		}
		answer := c.Answer.String()
		if c.Err != nil {
			answer = c.Err.Error()
		}
		if c.Left > 0 {
			answer += ", some time left"
		}
		line := Line{What: fmt.Sprintf("%s: claim of key %d", what, item.Key), Answer: answer, Resent: resent[i]}
		if c.Err == nil {
			line.Record = k.words(&c.Record)
		}
		p.lines = append(p.lines, line)
	}
	return nil
}

func (p *player) apply(what string, items []Item) error {
	transitions := make([]driver.Transition, len(items))
	for i, item := range items {
		transitions[i] = p.keys[item.Key].say(item, p.stage.Lease)
	}
	out, resent, err := resend(p.stage.Resend, transitions, func(batch []driver.Transition) []driver.Applied {
		return p.stage.Store.Apply(p.ctx, p.stage.Namespace, batch)
	}, func(a driver.Applied) error { return a.Err })
	if err != nil {
		return err
	}
	for i, a := range out {
		k := p.keys[items[i].Key]
		k.moved(items[i], transitions[i], a.Outcome)
		line := Line{What: fmt.Sprintf("%s: %v of key %d", what, items[i].Op, items[i].Key), Answer: a.Outcome.String(), Resent: resent[i]}
		if a.Outcome != driver.OK && a.Outcome != driver.Vanished {
			line.Record = k.words(&a.Record)
		}
		p.lines = append(p.lines, line)
	}
	return nil
}

// resend sends a batch, and what got no answer again.
func resend[Q, A any](times int, batch []Q, send func([]Q) []A, failed func(A) error) (out []A, resent []bool, err error) {
	out, resent = make([]A, len(batch)), make([]bool, len(batch))
	open := make([]int, len(batch))
	for i := range open {
		open[i] = i
	}
	for try := 0; len(open) > 0; try++ {
		part := make([]Q, len(open))
		for i, at := range open {
			part[i] = batch[at]
		}
		var still []int
		for i, answer := range send(part) {
			at := open[i]
			out[at] = answer
			if err = failed(answer); unanswered(err) {
				still = append(still, at)
				resent[at] = true
			}
		}
		if open = still; len(open) > 0 && try >= times {
			return nil, nil, failed(out[open[0]])
		}
	}
	return out, resent, nil
}

func (p *player) get(what string, keys []int) error {
	digests := make([]driver.Digest, len(keys))
	for i, n := range keys {
		digests[i] = p.keys[n].digest
	}
	records, err := p.stage.Store.Get(p.ctx, p.stage.Namespace, digests)
	if err != nil {
		return err
	}
	for i, n := range keys {
		p.lines = append(p.lines, Line{What: fmt.Sprintf("%s: key %d", what, n), Record: p.keys[n].words(&records[i])})
	}
	return nil
}

func (p *player) scan(what string, filter driver.Filter) error {
	shown := map[int]string{}
	err := p.stage.Store.Scan(p.ctx, p.stage.Namespace, filter, func(digest driver.Digest, r driver.Record) bool {
		n := slices.IndexFunc(p.keys[:], func(k *keyPlay) bool { return k.digest == digest })
		if n < 0 {
			shown[n] = fmt.Sprintf("the unknown key %x", digest[:4])
			return true
		}
		shown[n] = fmt.Sprintf("key %d is %s", n, p.keys[n].words(&r))
		return true
	})
	if err != nil {
		return err
	}
	var all []string
	for _, n := range slices.Sorted(maps.Keys(shown)) {
		all = append(all, shown[n])
	}
	p.lines = append(p.lines, Line{What: what + ": scan", Record: strings.Join(all, "\n")})
	return nil
}

func (p *player) marker(what string, update driver.Marker) error {
	m, err := p.stage.Store.Marker(p.ctx, p.stage.Namespace, update)
	p.lines = append(p.lines, Line{What: what + ": marker", Record: fmt.Sprint(m.Epoch, m.Format, m.Partitions, m.Committed)})
	return err
}

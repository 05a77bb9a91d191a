package consumer

import "fmt"

// Leftovers says what the loop of a consumer still counts or keeps after Run has
// returned; "" when that is nothing.
func (c *Consumer) Leftovers() string {
	l := c.loop.Load()
	if l == nil {
		return "" // it never ran
	}
	<-l.over
	var left []string
	for _, x := range []struct {
		what string
		n    int
	}{
		{"open", l.open},
		{"bytes", l.bytes},
		{"pending", l.pending},
		{"holds", l.holds},
		{"claiming", l.claiming},
		{"claimable", l.claimable},
		{"applying", l.applying},
		{"producing", len(l.producing)},
		{"held", l.held},
		{"doubts", len(l.doubts)},
		{"timers", len(l.timers)},
		{"applyQ", l.applyQ.len()},
		{"produceQ", l.produceQ.len()},
		{"lanes", len(l.lanes.lanes)},
		{"keys", len(l.lanes.keys)},
		{"revokes", len(l.revokes)},
	} {
		if x.n != 0 {
			left = append(left, fmt.Sprintf("%s %d", x.what, x.n))
		}
	}
	if l.alone != nil {
		left = append(left, "alone")
	}
	if waiting, taken := l.pool.load(); waiting != 0 || taken != 0 {
		left = append(left, fmt.Sprintf("pool: %d waiting, %d taken", waiting, taken))
	}
	for tp, p := range l.parts {
		if p.open != 0 || p.bytes != 0 {
			left = append(left, fmt.Sprintf("%v: open %d, bytes %d", tp, p.open, p.bytes))
		}
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprint(left)
}

// Assigned describes the partitions that a running consumer has.
func (c *Consumer) Assigned() (all []string) {
	l := c.loop.Load()
	done := make(chan struct{})
	if !l.post(func() {
		for tp, p := range l.parts {
			all = append(all, fmt.Sprintf("%v of generation %d: %d open, %d in the window, mark %d, committed %d, next fetch %d, leaving %v, paused %v %v",
				tp, p.generation, p.open, p.span(), p.mark, p.committed, p.nextFetch, p.leaving, p.paused, l.allPaused))
			if it := p.oldest(); it != nil {
				all = append(all, fmt.Sprintf("its oldest, at %d, %s, tries %d, request %v", it.rec.Offset, it.stage, it.tries, it.request.Attempt != 0))
			}
		}
		close(done)
	}) {
		return []string{"the loop is over"}
	}
	<-done
	return all
}

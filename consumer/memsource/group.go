package memsource

import (
	"cmp"
	"maps"
	"slices"

	"github.com/oncefence/oncefence/consumer/driver"
)

// group is the coordinator's view of one consumer group.
type group struct {
	broker    *Broker
	name      string
	members   []*Source // in the order in which they joined
	slots     map[driver.TopicPartition]*slot
	committed map[driver.TopicPartition]driver.Offset
	// known is how many partitions a topic had when the group first used it.
	known      map[string]int
	generation uint64
}

// slot is one partition of a group: owner has it, want is to have it.
type slot struct {
	owner, want *Source
	revoking    bool
}

func (b *Broker) group(name string) *group {
	g := b.groups[name]
	if g == nil {
		g = &group{
			broker:    b,
			name:      name,
			slots:     map[driver.TopicPartition]*slot{},
			committed: map[driver.TopicPartition]driver.Offset{},
			known:     map[string]int{},
		}
		b.groups[name] = g
	}
	return g
}

// join adds a member and lets the others give it its share.
func (g *group) join(s *Source) {
	for _, name := range s.all {
		if _, ok := g.known[name]; !ok {
			g.known[name] = len(g.broker.topics[name].partitions)
		}
	}
	g.members = append(g.members, s)
	g.balance()
}

// leave takes a member out; what it still owns is free at once.
func (g *group) leave(s *Source) {
	g.members = slices.DeleteFunc(g.members, func(m *Source) bool { return m == s })
	for _, sl := range g.slots {
		if sl.owner == s {
			sl.owner, sl.revoking = nil, false
		}
	}
	g.balance()
}

// balance says who is to have what and sets it going: partitions that move are
// revoked first and assigned when the old owner has let go, the others stay.
func (g *group) balance() {
	load := map[*Source]int{}
	for _, name := range slices.Sorted(maps.Keys(g.known)) {
		g.spread(name, load)
	}
	g.settle()
}

// spread shares the partitions of a topic among the members that read it, as
// evenly as can be and with as few moves as can be.
func (g *group) spread(name string, load map[*Source]int) {
	var readers []*Source
	for _, m := range g.members {
		if slices.Contains(m.all, name) {
			readers = append(readers, m)
		}
	}
	have := map[*Source]int{}
	parts := make([]*slot, len(g.broker.topics[name].partitions))
	for i := range parts {
		tp := driver.TopicPartition{Topic: name, Partition: int32(i)}
		if g.slots[tp] == nil {
			g.slots[tp] = &slot{}
		}
		parts[i] = g.slots[tp]
		have[parts[i].owner]++
	}
	if len(readers) == 0 {
		for _, sl := range parts {
			sl.want = nil
		}
		return
	}
	// Those that have most keep most; among equals who has least elsewhere gets
	// the odd one.
	order := slices.Clone(readers)
	slices.SortStableFunc(order, func(a, b *Source) int {
		return cmp.Or(cmp.Compare(have[b], have[a]), cmp.Compare(load[a], load[b]))
	})
	quota := map[*Source]int{}
	for i, m := range order {
		quota[m] = len(parts) / len(order)
		if i < len(parts)%len(order) {
			quota[m]++
		}
		load[m] += quota[m]
	}
	for _, sl := range parts {
		sl.want = nil
		if quota[sl.owner] > 0 {
			sl.want = sl.owner
			quota[sl.owner]--
		}
	}
	for _, sl := range parts {
		for _, m := range order {
			if sl.want == nil && quota[m] > 0 {
				sl.want = m
				quota[m]--
			}
		}
	}
}

// settle revokes what is to move and assigns what is free.
func (g *group) settle() {
	revoke := map[*Source][]driver.TopicPartition{}
	assign := map[*Source][]driver.TopicPartition{}
	for _, tp := range g.partitions() {
		sl := g.slots[tp]
		switch {
		case sl.owner == nil && sl.want != nil:
			sl.owner = sl.want
			assign[sl.owner] = append(assign[sl.owner], tp)
		case sl.owner != nil && sl.owner != sl.want && !sl.revoking:
			sl.revoking = true
			revoke[sl.owner] = append(revoke[sl.owner], tp)
		}
	}
	for _, m := range g.members {
		if tps := revoke[m]; len(tps) > 0 {
			m.revoke(tps)
		}
		if tps := assign[m]; len(tps) > 0 {
			m.assign(tps)
		}
	}
}

// partitions returns the group's partitions in order.
func (g *group) partitions() []driver.TopicPartition {
	return slices.SortedFunc(maps.Keys(g.slots), compare)
}

func compare(a, b driver.TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// Rebalance takes all partitions from all members of a group, each with
// Revoked, and assigns them anew under higher generations. It does not wait.
func (b *Broker) Rebalance(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.group(name)
	for _, m := range g.members {
		var tps []driver.TopicPartition
		for _, tp := range g.partitions() {
			if sl := g.slots[tp]; sl.owner == m && !sl.revoking {
				sl.revoking = true
				tps = append(tps, tp)
			}
		}
		if len(tps) > 0 {
			m.revoke(tps)
		}
	}
}

// Committed returns a group's committed position; false: it has none.
func (b *Broker) Committed(name string, tp driver.TopicPartition) (driver.Offset, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.group(name).committed[tp]
	return o, ok
}

// SetCommitted commits positions for a group from outside, as a reset tool
// does. Members see them at their next assignment.
func (b *Broker) SetCommitted(name string, offsets ...driver.Offset) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range offsets {
		b.group(name).committed[o.TopicPartition] = o
	}
}

// Forget removes a group's committed positions, as their expiry does.
func (b *Broker) Forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.group(name).committed)
}

// Owner returns the member of a group that has a partition, nil if none has.
func (b *Broker) Owner(name string, tp driver.TopicPartition) *Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sl := b.group(name).slots[tp]; sl != nil {
		return sl.owner
	}
	return nil
}

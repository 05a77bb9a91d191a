package consumer

import (
	"hash/maphash"
)

// chain is items in their order of arrival.
type chain struct {
	head, tail *item
	n          int   // items that have not left
	waiting    *item // the first that may not go on yet (lanes only)
}

// lanes keeps two orders over the items in work: the lane (records that must
// run one after the other) and the key (records of one idempotency key, of
// which one at a time is in work in this process). Both are in order of
// arrival, so waiting for both cannot form a circle.
type lanes struct {
	order Ordering
	ahead int // how many items of a lane may go on to their claim, the first included
	seed  maphash.Seed
	lanes map[uint64]chain
	keys  map[[32]byte]chain
}

func newLanes(order Ordering, ahead int) *lanes {
	return &lanes{order: order, ahead: ahead, seed: maphash.MakeSeed(), lanes: make(map[uint64]chain), keys: make(map[[32]byte]chain)}
}

// enterLane puts it into its lane, if it has one, and reports whether it may go
// on to its claim. Two lanes that share a hash only wait for each other.
func (l *lanes) enterLane(it *item) (goOn bool) {
	var h maphash.Hash
	switch {
	case l.order == OrderNone, l.order == OrderByKey && it.rec.Key == nil:
		return true
	case l.order == OrderByKey:
		h.SetSeed(l.seed)
		_, _ = h.Write(it.rec.Key) // never fails
	default:
		h.SetSeed(l.seed)
	}
	_, _ = h.WriteString(it.rec.Topic)
	_ = h.WriteByte(byte(it.rec.Partition))
	_ = h.WriteByte(byte(it.rec.Partition >> 8))
	it.laneKey, it.inLane = h.Sum64(), true
	c := l.lanes[it.laneKey]
	if c.head == nil {
		c.head = it
	} else {
		c.tail.laneNext = it
	}
	c.tail = it
	c.n++
	goOn = c.waiting == nil && c.n <= l.ahead
	if !goOn && c.waiting == nil {
		c.waiting = it
	}
	l.lanes[it.laneKey] = c
	return goOn
}

// isFirst reports whether it may run as far as its lane is concerned.
func (l *lanes) isFirst(it *item) bool {
	return !it.inLane || l.lanes[it.laneKey].head == it
}

// leaveLane takes it out. first is the item that is first now, if that changed;
// next is the item that may go on to its claim now, if there is one.
func (l *lanes) leaveLane(it *item) (first, next *item) {
	if !it.inLane {
		return nil, nil
	}
	it.inLane = false
	c := l.lanes[it.laneKey]
	c.n--
	for c.waiting != nil && !c.waiting.inLane {
		c.waiting = c.waiting.laneNext
	}
	if c.head == it {
		for c.head != nil && !c.head.inLane {
			gone := c.head
			c.head = gone.laneNext
			gone.laneNext = nil
		}
		first = c.head
	}
	if c.head == nil {
		delete(l.lanes, it.laneKey)
		return nil, nil
	}
	if next = c.waiting; next != nil {
		for c.waiting = next.laneNext; c.waiting != nil && !c.waiting.inLane; {
			c.waiting = c.waiting.laneNext
		}
	}
	l.lanes[it.laneKey] = c
	return first, next
}

// enterKey reports whether it is the one in work for its key.
func (l *lanes) enterKey(it *item) (first bool) {
	d := it.key.Digest()
	it.hasKey = true
	c := l.keys[d]
	if c.head == nil {
		l.keys[d] = chain{head: it, tail: it}
		return true
	}
	c.tail.keyNext = it
	c.tail = it
	l.keys[d] = c
	return false
}

// leaveKey takes it out and returns the item whose turn it is now, if that
// changed.
func (l *lanes) leaveKey(it *item) *item {
	if !it.hasKey {
		return nil
	}
	it.hasKey = false
	d := it.key.Digest()
	c := l.keys[d]
	if c.head != it {
		return nil
	}
	for c.head != nil && !c.head.hasKey {
		next := c.head.keyNext
		c.head.keyNext = nil
		c.head = next
	}
	if c.head == nil {
		delete(l.keys, d)
		return nil
	}
	l.keys[d] = c
	return c.head
}

// replace puts another item in the place of one that was given up.
func (l *lanes) replace(old, with *item) {
	with.inLane, with.laneKey, with.laneNext = old.inLane, old.laneKey, old.laneNext
	with.hasKey, with.keyNext = old.hasKey, old.keyNext
	if old.inLane {
		l.lanes[old.laneKey] = swap(l.lanes[old.laneKey], old, with, func(it *item) **item { return &it.laneNext })
	}
	if old.hasKey {
		d := old.key.Digest()
		l.keys[d] = swap(l.keys[d], old, with, func(it *item) **item { return &it.keyNext })
	}
	old.inLane, old.hasKey, old.laneNext, old.keyNext = false, false, nil, nil
}

func swap(c chain, old, with *item, next func(*item) **item) chain {
	if c.head == old {
		c.head = with
	} else {
		for it := c.head; it != nil; it = *next(it) {
			if *next(it) == old {
				*next(it) = with
			}
		}
	}
	if c.tail == old {
		c.tail = with
	}
	if c.waiting == old {
		c.waiting = with
	}
	return c
}

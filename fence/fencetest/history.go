package fencetest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/oncefence/oncefence/fence/driver"
)

// History is a row of moves on a few keys, written without tokens, nonces and
// times, so that it can be played on any store.
type History []Move

// Move is one call of a store.
type Move struct {
	Verb Verb
	// Items is the batch of MoveClaim and MoveApply: no key twice.
	Items []Item
	// Filter is MoveScan's.
	Filter driver.Filter
	// Marker is MoveMarker's.
	Marker driver.Marker
}

// Verb is the kind of a Move.
type Verb uint8

// The verbs of a history.
const (
	MoveClaim Verb = iota
	MoveApply
	MoveScan
	MovePurge
	MoveMarker
)

// Item is one claim or transition.
type Item struct {
	// Key is a number from 0 to HistoryKeys-1.
	Key int
	// Ends makes the item's time limits short (lease, due time, retention): they
	// end before the next move.
	Ends bool

	// Of a claim:

	Attempt uint32 // from 1
	Step    uint32
	Kind    driver.Kind
	// Payload makes the fingerprint; 0 is none.
	Payload byte
	InPlace bool
	// Unsure says that its holder's transitions carry doubt also where the claim
	// found none.
	Unsure bool
	// Again sends the key's last claim again instead.
	Again bool
	// TooLate names a time that is past; Patient allows no takeover.
	TooLate, Patient bool

	// Of a transition:

	Op driver.Op
	// Back chooses the holder that speaks: 0 is the key's last granted claim, 1
	// the one before it, and so on. Without so many, and with a negative one, a
	// stranger speaks.
	Back    int
	Applied bool // Resolve
	Steps   int  // Keep: how many
}

// HistoryKeys is the number of keys that a history may use.
const HistoryKeys = 3

// RandomHistory makes a history from a seed.
func RandomHistory(seed uint64, moves int) History {
	r := rand.New(rand.NewPCG(seed, 2))
	out := make(History, moves)
	key := 0
	for i := range out {
		if chance(r, 2) { // otherwise the story of the same key goes on
			key = r.IntN(HistoryKeys)
		}
		out[i] = randomMove(r, key)
	}
	return out
}

func randomMove(r *rand.Rand, first int) Move {
	m := Move{}
	switch n := r.IntN(40); {
	case n < 16:
		m.Verb = MoveClaim
	case n < 37:
		m.Verb = MoveApply
	case n == 37:
		m.Verb = MoveScan
		m.Filter = driver.Filter{InDoubt: chance(r, 2)}
		if chance(r, 2) {
			m.Filter.States = []driver.State{driver.State(1 + r.IntN(4))}
		}
		return m
	case n == 38:
		m.Verb = MovePurge
		return m
	default:
		m.Verb = MoveMarker
		m.Marker = driver.Marker{
			Epoch: [16]byte{byte(1 + r.IntN(3))}, Format: 1, Partitions: map[string]int32{"orders": int32(r.IntN(9))},
			Committed: map[driver.TopicPartition]int64{{Topic: "orders", Partition: int32(r.IntN(3))}: int64(r.IntN(99))},
		}
		return m
	}
	for n := range 1 + r.IntN(2) {
		item := Item{Key: (first + n) % HistoryKeys, Ends: chance(r, 4)}
		if m.Verb == MoveClaim {
			item.claim(r)
		} else {
			item.transition(r)
		}
		m.Items = append(m.Items, item)
	}
	return m
}

// chance is one in n.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

func (i *Item) claim(r *rand.Rand) {
	kinds := []driver.Kind{driver.KindIdempotent, driver.KindIdempotent, driver.KindProbed, driver.KindAtMostOnce, driver.KindTransactional}
	i.Kind, i.Attempt, i.Step = kinds[r.IntN(len(kinds))], uint32(1+r.IntN(4)), uint32(r.IntN(3))
	i.Payload = []byte{1, 1, 1, 1, 1, 1, 0, 2}[r.IntN(8)]
	i.InPlace, i.Unsure = chance(r, 4), chance(r, 4)
	i.Again, i.TooLate, i.Patient = chance(r, 10), chance(r, 20), chance(r, 20)
}

func (i *Item) transition(r *rand.Rand) {
	i.Op = driver.Op(1 + r.IntN(int(driver.Resolve)))
	if chance(r, 3) { // the ones that late doubles could harm most
		i.Op = []driver.Op{driver.Release, driver.Keep, driver.Retry, driver.GiveUp}[r.IntN(4)]
	}
	i.Back = []int{0, 0, 0, 0, 0, 0, 1, 1, 2, -1}[r.IntN(10)]
	i.Applied, i.Steps = chance(r, 2), 1+r.IntN(3)
}

// String writes the history as one line for each move.
func (h History) String() string {
	var out strings.Builder
	for i, m := range h {
		fmt.Fprintf(&out, "%3d %s\n", i, m)
	}
	return out.String()
}

// String writes the move for a person.
func (m Move) String() string {
	words := []string{[]string{"claim", "apply", "scan", "purge", "marker"}[m.Verb]}
	switch m.Verb {
	case MoveClaim, MoveApply:
		for _, i := range m.Items {
			words = append(words, i.text(m.Verb))
		}
	case MoveScan:
		words = append(words, fmt.Sprintf("%+v", m.Filter))
	case MoveMarker:
		words = append(words, fmt.Sprint(m.Marker.Partitions, m.Marker.Committed))
	case MovePurge:
	}
	return strings.Join(words, " ")
}

func (i Item) text(v Verb) string {
	words := []string{fmt.Sprint("key ", i.Key)}
	add := func(ok bool, word string) {
		if ok {
			words = append(words, word)
		}
	}
	if v == MoveClaim {
		add(i.Again, "again")
		words = append(words, fmt.Sprintf("%v attempt %d step %d payload %d", i.Kind, i.Attempt, i.Step, i.Payload))
		add(i.InPlace, "in place")
		add(i.Unsure, "unsure")
		add(i.TooLate, "too late")
		add(i.Patient, "patient")
	} else {
		words = append(words, fmt.Sprintf("%v by %d", i.Op, i.Back))
		add(i.Applied && i.Op == driver.Resolve, "applied")
		add(i.Op == driver.Keep, fmt.Sprint(i.Steps, " steps"))
	}
	add(i.Ends, "ends")
	return "[" + strings.Join(words, ", ") + "]"
}

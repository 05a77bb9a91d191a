package fencetest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// strangeToken is one that no store makes in a play.
const strangeToken = 1 << 40

func digestOf(namespace string, key int) driver.Digest {
	return sha256.Sum256(fmt.Appendf(nil, "%s key %d", namespace, key))
}

// keyPlay is one key's part of a play: who asked, who was granted, and names
// for tokens and nonces that are the same on every store.
type keyPlay struct {
	digest   driver.Digest
	asked    []driver.Claim
	granted  []grant        // the last one first
	top      uint64         // the highest token
	tokens   map[uint64]int // by number; 0 is none
	nonces   map[driver.Nonce]int
	released bool
}

type grant struct {
	claim driver.Claim
	rec   driver.Record
	doubt bool // its transitions carry it
}

func (k *keyPlay) ask(i Item, lease time.Duration) driver.Claim {
	if i.Again && len(k.asked) > 0 {
		return k.asked[len(k.asked)-1]
	}
	c := driver.Claim{
		Key: k.digest, Nonce: nonce(), Kind: i.Kind, Attempt: i.Attempt, Step: i.Step, Lease: long, InPlace: i.InPlace,
		Origin: driver.Origin{Source: "kafka", Topic: "orders", Offset: int64(len(k.asked)), Timestamp: 1700000000000}, TakeoverUntil: 1 << 52,
	}
	if i.Payload > 0 {
		c.Fingerprint = driver.Fingerprint{Scheme: 1, Sum: [16]byte{i.Payload}}
	}
	if i.Ends {
		c.Lease = lease
	}
	if i.TooLate {
		c.NotAfter = 1
	}
	if i.Patient {
		c.TakeoverUntil = 0
	}
	k.asked = append(k.asked, c)
	k.nonces[c.Nonce] = len(k.asked)
	return c
}

// answered notes a granted claim, whose token must be new and the highest, or
// the one that it got before.
func (k *keyPlay) answered(c driver.Claim, got driver.Claimed, i Item) error {
	if got.Err != nil || !got.Answer.Granted() {
		return nil
	}
	for at, g := range k.granted {
		if g.claim.Nonce == c.Nonce && g.rec.Token == got.Record.Token {
			k.granted[at].rec = got.Record
			return nil
		}
	}
	if got.Record.Token <= k.top {
		return fmt.Errorf("key %d was granted with token %d after %d", i.Key, got.Record.Token, k.top)
	}
	k.top = got.Record.Token
	k.tokens[k.top] = len(k.granted) + 1
	k.granted = slices.Insert(k.granted, 0, grant{claim: c, rec: got.Record, doubt: got.Record.InDoubt || i.Unsure})
	return nil
}

// say makes a transition that a consumer could send: its holder says the same
// verdict whenever it speaks, and moves on to higher attempts only.
func (k *keyPlay) say(i Item, lease time.Duration) driver.Transition {
	var g grant
	if i.Back >= 0 && i.Back < len(k.granted) {
		g = k.granted[i.Back]
	} else {
		g = grant{claim: driver.Claim{Nonce: driver.Nonce{0xff}, Attempt: 1}, rec: driver.Record{Token: strangeToken, Attempt: 1, FirstSeen: 1}}
	}
	t := transition(i.Op, k.digest, g.claim.Nonce, &g.rec)
	t.InDoubt, t.Applied = g.doubt, i.Applied
	if i.Ends {
		t.Retention, t.Due = lease, min(t.Due, lease)
		t.Lease = min(t.Lease, lease)
	}
	switch i.Op {
	case driver.HandOver:
		t.Attempt = max(g.rec.Attempt, g.claim.Attempt) + 1
	case driver.Bury:
		t.Attempt = max(g.rec.Attempt, g.claim.Attempt)
	case driver.Keep:
		t.Steps = nil
		for n := range i.Steps {
			t.Steps = append(t.Steps, driver.Step{Name: fmt.Sprint("step ", n), Kind: driver.KindProbed, Receipt: []byte{byte(n)}})
		}
	}
	return t
}

// moved follows what a transition did to its holder.
func (k *keyPlay) moved(i Item, t driver.Transition, outcome driver.Outcome) {
	done := outcome == driver.OK || outcome == driver.Repeated
	if i.Op == driver.Release && done {
		k.released = true
	}
	if i.Op == driver.Begin && done && i.Back >= 0 && i.Back < len(k.granted) {
		k.granted[i.Back].rec.Attempt, k.granted[i.Back].rec.Step = t.NextAttempt, t.NextStep
	}
}

// words is a record without what differs between stores: tokens and nonces by
// number, times by whether they are set.
func (k *keyPlay) words(r *driver.Record) string {
	if r.State == driver.Absent {
		return "absent"
	}
	var out []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	number := func(t uint64) string {
		if n, known := k.tokens[t]; known {
			return fmt.Sprint("#", n)
		}
		return "of a claim whose answer nobody got"
	}
	add(true, "%v %v token %s attempt %d step %d takeovers %d", r.State, r.Kind, number(r.Token), r.Attempt, r.Step, r.Takeovers)
	add(r.Verdict != driver.NoVerdict, "verdict %v next %d/%d", r.Verdict, r.NextAttempt, r.NextStep)
	add(r.InDoubt, "in doubt")
	add(r.Fingerprint.Scheme != 0, "payload %d:%d", r.Fingerprint.Scheme, r.Fingerprint.Sum[0])
	add(r.Nonce != driver.Nonce{}, "nonce #%d", k.nonces[r.Nonce])
	add(r.Released != driver.Nonce{}, "released #%d token %s", k.nonces[r.Released], number(r.ReleasedToken))
	for name, time := range map[string]int64{"lease": r.LeaseEnd, "attempt end": r.AttemptEnd, "due": r.Due, "seen": r.FirstSeen, "sealed": r.SealedAt, "expires": r.Expire} {
		add(time != 0, "%s", name)
	}
	slices.Sort(out[1:])
	add(true, "origin %v", r.Origin)
	add(r.EffectID != "" || len(r.Receipt) > 0, "effect %q receipt %q", r.EffectID, r.Receipt)
	add(r.Reason != "", "reason %q", r.Reason)
	add(len(r.Steps) > 0, "steps %v", r.Steps)
	add(r.PriorLost, "prior lost")
	if r.Prior != nil {
		out = append(out, "over {"+k.words(r.Prior)+"}")
	}
	return strings.Join(out, ", ")
}

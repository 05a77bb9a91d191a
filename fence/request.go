package fence

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// Request asks for a key. Send the same Request, unchanged, until an answer
// without error was read, or give it up with Space.Abandon: until then it is one
// claim, however often it is sent. Afterwards it may ask anew. It belongs to
// one goroutine at a time.
type Request struct {
	Key  Key
	Kind driver.Kind // from KindTransactional to KindAtMostOnce
	// Attempt is the delivery's, from 1.
	Attempt uint32
	Step    uint32
	// Lease is the time limit of the claim, renewed until the Hold is dropped.
	// 0 is DefaultLease, for KindAtMostOnce DefaultAtMostOnceLease. Less than
	// MinLease, negative, and more than the retention are refused. Use one lease
	// in all processes of a namespace: the jump of the store's clock that a
	// holder survives is a quarter of its own.
	Lease       time.Duration
	Fingerprint Fingerprint
	Origin      driver.Origin
	// InPlace: see driver.Claim.
	InPlace bool

	nonce    driver.Nonce
	first    time.Time // before it was sent for the first time
	notAfter int64     // the latest NotAfter that was sent
}

// forget ends the claim that r was: the next one has another nonce.
func (r *Request) forget() { r.nonce, r.first, r.notAfter = driver.Nonce{}, time.Time{}, 0 }

func (r *Request) lease() time.Duration {
	switch {
	case r.Lease != 0:
		return r.Lease
	case r.Kind == driver.KindAtMostOnce:
		return DefaultAtMostOnceLease
	}
	return DefaultLease
}

// Claimed is the answer to a Request.
type Claimed struct {
	Answer driver.Answer
	// Hold is set when the answer is granted. End it with a transition and Drop.
	Hold *Hold
	// Record is the record that answered, or the pending one that is held.
	Record driver.Record
	// Left is, with Held, how long until asking again makes sense; 0 unknown.
	Left time.Duration
	// Err means failed or unknown: ask again with the same Request, or Abandon
	// it. ErrClosed and refused arguments will not get better.
	Err error
}

// Claim asks the store for a batch of keys, no key twice, and answers in order.
// It blocks for the store's answer or the end of ctx. A claim whose answer took
// half of its lease is renewed before Claim returns.
func (s *Space) Claim(ctx context.Context, requests []*Request) []Claimed {
	out := make([]Claimed, len(requests))
	send, places := s.admit(requests, out)
	if len(send) == 0 {
		return out
	}
	sent := s.now()
	claims := s.claims(send, sent)
	answers := s.fence.store.Claim(ctx, s.text, claims)
	read := s.now()

	var now int64
	failed := 0
	holds := make([]*Hold, 0, len(answers))
	var late []int
	for i := range answers {
		a, r, at := &answers[i], send[i], i
		if places != nil {
			at = places[i]
		}
		now = earlier(now, a.Now)
		out[at] = Claimed{Answer: a.Answer, Record: a.Record, Left: a.Left, Err: a.Err}
		switch {
		case a.Err != nil:
			failed++
			out[at].Err = fmt.Errorf("claim %s: %w", r.Key.Text(), a.Err)
			if errors.Is(a.Err, driver.ErrTooLate) || errors.Is(a.Err, driver.ErrReleased) {
				r.forget()
			}
			continue
		case !a.Answer.Granted():
			if a.Record.Verdict != driver.VerdictRetry { // a due time is not bound by the lease
				out[at].Left = min(a.Left, claims[i].Lease)
			}
		default:
			hold := newHold(s, r.Key, &a.Record, claims[i].Lease, r.first)
			out[at].Hold = hold
			if passed(r.first, read) >= hold.lease/2 {
				late = append(late, at)
				continue
			}
			holds = append(holds, hold)
		}
		r.forget()
	}
	s.observe(now, sent, read)
	s.fence.opts.Observer.StoreCall("claim", len(claims), failed, read.Sub(sent))
	if len(late) > 0 {
		holds = append(holds, s.revive(ctx, requests, out, late)...)
	}
	s.add(holds)
	return out
}

// admit answers the requests that cannot be sent and returns the others, with
// their places unless that is all of them.
func (s *Space) admit(requests []*Request, out []Claimed) (send []*Request, places []int) {
	refused := 0
	closed := s.isClosed()
	seen := keySet()
	defer seen.free()
	for i, r := range requests {
		switch {
		case closed:
			out[i].Err = fmt.Errorf("claim %s in namespace %s: %w", r.Key.Text(), s.text, ErrClosed)
		case seen.twice(r.Key.digest):
			out[i].Err = fmt.Errorf("claim %s: the key stands twice in the batch: claim it in the next one", r.Key.Text())
		default:
			out[i].Err = s.check(r)
		}
		if out[i].Err != nil {
			refused++
		}
	}
	if refused == 0 {
		return requests, nil
	}
	for i, r := range requests {
		if out[i].Err == nil {
			send, places = append(send, r), append(places, i)
		}
	}
	return send, places
}

func (s *Space) check(r *Request) error {
	lease, retention := r.lease(), s.fence.opts.Retention
	if r.Key.IsZero() || r.Attempt == 0 || r.Kind == driver.KindNone || r.Kind > driver.KindAtMostOnce || lease < MinLease {
		return fmt.Errorf("claim %q: needs a key, an attempt from 1, a kind that uses a fence, and a lease of at least %v (has attempt %d, kind %v, lease %v)",
			r.Key.Text(), MinLease, r.Attempt, r.Kind, lease)
	}
	if retention != 0 && lease > retention {
		return fmt.Errorf("claim %s: the lease of %v is longer than the fence's retention of %v: shorten the lease or raise fence.Options.Retention", r.Key.Text(), lease, retention)
	}
	return nil
}

// claims makes the batch, with nonces for those that are sent for the first
// time.
func (s *Space) claims(send []*Request, sent time.Time) []driver.Claim {
	claims := make([]driver.Claim, len(send))
	var random []byte
	shortest, longest := send[0].lease(), time.Duration(0)
	for i, r := range send {
		if r.nonce == (driver.Nonce{}) {
			if len(random) == 0 {
				random = make([]byte, (len(send)-i)*len(r.nonce))
				_, _ = rand.Read(random) // never fails, see crypto/rand
			}
			r.nonce, random = driver.Nonce(random[:len(r.nonce)]), random[len(r.nonce):]
			r.first = sent
		}
		claims[i] = driver.Claim{
			Key: r.Key.digest, Nonce: r.nonce, Kind: r.Kind, Attempt: r.Attempt, Step: r.Step, Lease: r.lease(),
			Fingerprint: r.Fingerprint, Origin: r.Origin, InPlace: r.InPlace,
		}
		shortest, longest = min(shortest, claims[i].Lease), max(longest, claims[i].Lease)
	}
	tolerated := s.uses(shortest, longest)
	estimate, trusted := s.clock.estimate(sent)
	for i, r := range send {
		r.notAfter = max(r.notAfter, estimate+s.fence.opts.ClaimTimeout.Microseconds())
		claims[i].NotAfter, claims[i].TakeoverUntil = r.notAfter, trusted+tolerated.Microseconds()
	}
	return claims
}

// revive renews claims that are old already when their answer comes, so that
// no Hold is dead on arrival. It returns those that are alive.
func (s *Space) revive(ctx context.Context, requests []*Request, out []Claimed, late []int) (alive []*Hold) {
	batch := make([]driver.Transition, len(late))
	for i, at := range late {
		batch[i] = out[at].Hold.renewal()
	}
	sent := s.now()
	for i, a := range s.apply(ctx, "renew", batch) {
		c, r := &out[late[i]], requests[late[i]]
		hold := c.Hold
		if a.Err == nil && a.Outcome == driver.OK {
			hold.answered(sent, s.now(), &a)
			alive = append(alive, hold)
			r.forget()
			continue
		}
		err := a.Err
		if err == nil {
			err = ErrLeaseLost
			r.forget()
		}
		*c = Claimed{Err: fmt.Errorf("claim %s: the answer came after half of the lease of %v, then: %w", r.Key.Text(), hold.lease, err)}
	}
	return alive
}

// earlier is the earlier of two store times, 0 being none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// keys finds a key that stands twice in a batch.
type keys struct{ seen map[driver.Digest]struct{} }

var keySets = sync.Pool{New: func() any { return &keys{seen: make(map[driver.Digest]struct{})} }}

func keySet() *keys { return keySets.Get().(*keys) }

func (k *keys) twice(key driver.Digest) bool {
	n := len(k.seen)
	k.seen[key] = struct{}{}
	return len(k.seen) == n
}

func (k *keys) free() {
	clear(k.seen)
	keySets.Put(k)
}

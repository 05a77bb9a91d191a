package fence

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// Space is one namespace of a Fence, opened. It renews the leases of all
// claims made through it until they end, with one goroutine.
type Space struct {
	fence *Fence
	ns    Namespace
	text  string
	clock clock
	grade driver.Grade
	epoch [16]byte

	mu      sync.Mutex
	groups  []*group
	orphans []orphan
	lease   time.Duration // the longest one used
	wake    chan struct{}
	stop    context.CancelFunc
	done    chan struct{}
}

// Open checks the store's grade, finds or makes the namespace's marker, learns
// the store's clock and starts to renew. Close ends that.
func (f *Fence) Open(ctx context.Context, ns Namespace) (*Space, error) {
	if ns.IsZero() {
		return nil, fmt.Errorf("open fence: the namespace is empty: make it with fence.NewNamespace")
	}
	grade, err := f.check(ctx)
	if err != nil {
		return nil, err
	}
	s := &Space{
		fence: f, ns: ns, text: ns.Text(), grade: grade, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	marker, err := s.Mark(ctx, driver.Marker{})
	if err != nil {
		return nil, err
	}
	s.epoch = marker.Epoch
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	go s.renewals(background)
	return s, nil
}

// Namespace returns the space's namespace.
func (s *Space) Namespace() Namespace { return s.ns }

// Grade returns the store's grade as read by Open.
func (s *Space) Grade() driver.Grade { return s.grade }

// Epoch returns the marker's epoch id as read by Open.
func (s *Space) Epoch() [16]byte { return s.epoch }

// Retention is how long sealed keys are kept; 0 means without end.
func (s *Space) Retention() time.Duration { return s.fence.opts.Retention }

// Close stops renewing. Claims that are still held end with their lease; claims
// whose answer never came are released if the store answers before ctx ends.
func (s *Space) Close(ctx context.Context) error {
	s.stop()
	select {
	case <-s.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.releaseOrphans(ctx, time.Now())
}

// Request asks for a key. Reuse the same Request, unchanged, until an answer
// was read: its nonce makes that one claim.
type Request struct {
	Key         Key
	Kind        driver.Kind
	Attempt     uint32
	Step        uint32
	Lease       time.Duration
	Fingerprint Fingerprint
	Origin      driver.Origin
	InPlace     bool
	nonce       driver.Nonce
}

// Claimed is the answer to a Request.
type Claimed struct {
	Answer driver.Answer
	// Hold is set when the answer is granted. It must be ended by a transition,
	// or by Drop.
	Hold *Hold
	// Record is the record that answered, or the pending one that is held.
	Record driver.Record
	// Left is, with Held, how long until asking again makes sense; 0 unknown.
	Left time.Duration
	// Err means failed or unknown: ask again with the same Request, or Abandon.
	Err error
}

// Claim asks the store once for a batch of keys, no key twice, and answers in
// order. It blocks for the store's answer or the end of ctx.
func (s *Space) Claim(ctx context.Context, requests []*Request) []Claimed {
	out := make([]Claimed, len(requests))
	claims := make([]driver.Claim, len(requests))
	sent := time.Now()
	estimate, takeovers := s.clock.estimate(sent)
	var random []byte
	for i, r := range requests {
		if r.nonce == (driver.Nonce{}) {
			if len(random) < len(r.nonce) {
				random = make([]byte, (len(requests)-i)*len(r.nonce))
				_, _ = rand.Read(random) // never fails, see crypto/rand
			}
			r.nonce, random = driver.Nonce(random[:16]), random[16:]
		}
		if r.Lease < MinLease || r.Attempt == 0 || r.Key.IsZero() || r.Kind == driver.KindNone {
			return refuseAll(out, fmt.Errorf("claim %s: needs a key, a kind, an attempt from 1 and a lease of at least %v (has kind %v, attempt %d, lease %v)", r.Key.Text(), MinLease, r.Kind, r.Attempt, r.Lease))
		}
		claims[i] = driver.Claim{
			Key: r.Key.Digest(), Nonce: r.nonce, Kind: r.Kind, Attempt: r.Attempt, Step: r.Step, Lease: r.Lease,
			Fingerprint: r.Fingerprint, Origin: r.Origin, InPlace: r.InPlace,
		}
		if estimate != 0 {
			claims[i].NotAfter = estimate + s.fence.opts.ClaimTimeout.Microseconds()
			if takeovers {
				claims[i].TakeoverUntil = estimate + margin(r.Lease).Microseconds()
			}
		}
	}
	answers := s.fence.store.Claim(ctx, s.text, claims)
	read := time.Now()
	failed := 0
	g := &group{sent: sent, holds: make([]Hold, 0, len(answers))}
	for i := range answers {
		a, r := &answers[i], requests[i]
		out[i] = Claimed{Answer: a.Answer, Record: a.Record, Left: a.Left, Err: a.Err}
		if a.Err != nil {
			failed++
			out[i].Err = fmt.Errorf("claim %s: %w", r.Key.Text(), a.Err)
			continue
		}
		if !a.Answer.Granted() {
			continue
		}
		g.lease = max(g.lease, r.Lease)
		g.holds = append(g.holds, Hold{space: s, key: r.Key, token: a.Record.Token, record: &out[i].Record, lease: r.Lease})
		hold := &g.holds[len(g.holds)-1]
		hold.end.Store(sent.Add(r.Lease - margin(r.Lease)).UnixNano())
		out[i].Hold = hold
	}
	if len(answers) > 0 {
		s.observe(answers[len(answers)-1].Now, sent, read, requests[0].Lease)
	}
	s.fence.opts.Observer.StoreCall("claim", len(claims), failed, read.Sub(sent))
	if len(g.holds) > 0 {
		s.add(g)
	}
	return out
}

func refuseAll(out []Claimed, err error) []Claimed {
	for i := range out {
		out[i].Err = err
	}
	return out
}

// Abandon gives up requests whose last answer was an error: if the store made
// the claim all the same, it is released as soon as the store can be reached.
// It does not block.
func (s *Space) Abandon(requests ...*Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	estimate, _ := s.clock.estimate(time.Now())
	for _, r := range requests {
		if r.nonce != (driver.Nonce{}) {
			s.orphans = append(s.orphans, orphan{key: r.Key.Digest(), nonce: r.nonce, until: estimate + s.fence.opts.ClaimTimeout.Microseconds()})
		}
	}
	s.nudge()
}

// Apply sends a batch of transitions once, no key twice, and answers in order.
// Transitions are made by the methods of Hold. Sending one again after an error
// is safe.
func (s *Space) Apply(ctx context.Context, transitions []driver.Transition) []driver.Applied {
	return s.apply(ctx, "apply", transitions)
}

func (s *Space) apply(ctx context.Context, op string, transitions []driver.Transition) []driver.Applied {
	sent := time.Now()
	answers := s.fence.store.Apply(ctx, s.text, transitions)
	read := time.Now()
	failed := 0
	for i := range answers {
		if answers[i].Err != nil {
			failed++
			answers[i].Err = fmt.Errorf("%s %x: %w", transitions[i].Op, transitions[i].Key, answers[i].Err)
		}
	}
	if len(answers) > 0 {
		s.observe(answers[len(answers)-1].Now, sent, read, 0)
	}
	s.fence.opts.Observer.StoreCall(op, len(transitions), failed, read.Sub(sent))
	return answers
}

// Now estimates the store's clock.
func (s *Space) Now() time.Time {
	micros, _ := s.clock.estimate(time.Now())
	return driver.Time(micros)
}

// Get reads records; a key without one answers State Absent.
func (s *Space) Get(ctx context.Context, keys []driver.Digest) ([]driver.Record, error) {
	start := time.Now()
	records, err := s.fence.store.Get(ctx, s.text, keys)
	s.fence.opts.Observer.StoreCall("get", len(keys), failures(err), time.Since(start))
	if err != nil {
		return nil, fmt.Errorf("get %d records of namespace %s: %w", len(keys), s.text, err)
	}
	return records, nil
}

// Scan calls yield for the records that the filter lets through, in no order.
func (s *Space) Scan(ctx context.Context, filter driver.Filter, yield func(driver.Digest, driver.Record) bool) error {
	start := time.Now()
	err := s.fence.store.Scan(ctx, s.text, filter, yield)
	s.fence.opts.Observer.StoreCall("scan", 1, failures(err), time.Since(start))
	if err != nil {
		return fmt.Errorf("scan namespace %s: %w", s.text, err)
	}
	return nil
}

// Purge removes expired records, at most limit.
func (s *Space) Purge(ctx context.Context, limit int) (int, error) {
	start := time.Now()
	n, err := s.fence.store.Purge(ctx, s.text, limit)
	s.fence.opts.Observer.StoreCall("purge", n, failures(err), time.Since(start))
	if err != nil {
		return n, fmt.Errorf("purge namespace %s: %w", s.text, err)
	}
	return n, nil
}

// Mark merges update into the namespace's marker and answers the result. It
// fails with ErrEpoch when the marker is not the one that Open found: the store
// was emptied, or is another one.
func (s *Space) Mark(ctx context.Context, update driver.Marker) (driver.Marker, error) {
	// Always a new one is offered: an emptied store must not take the old id.
	update.Format = driver.FormatVersion
	_, _ = rand.Read(update.Epoch[:]) // never fails, see crypto/rand
	sent := time.Now()
	marker, err := s.fence.store.Marker(ctx, s.text, update)
	read := time.Now()
	s.fence.opts.Observer.StoreCall("marker", 1, failures(err), read.Sub(sent))
	if err != nil {
		return marker, fmt.Errorf("read the marker of namespace %s: %w", s.text, err)
	}
	s.observe(marker.Now, sent, read, 0)
	if marker.Format != driver.FormatVersion {
		return marker, fmt.Errorf("namespace %s holds records of format %d, this program writes %d: use the release that wrote them, or another namespace", s.text, marker.Format, driver.FormatVersion)
	}
	if s.epoch != ([16]byte{}) && marker.Epoch != s.epoch {
		return marker, fmt.Errorf("%w: namespace %s had epoch %x and has %x now: the store was emptied or is another one; sealed keys are missing", ErrEpoch, s.text, s.epoch, marker.Epoch)
	}
	return marker, nil
}

func (s *Space) observe(storeNow int64, sent, read time.Time, lease time.Duration) {
	s.mu.Lock()
	s.lease = max(s.lease, lease)
	lease = s.lease
	s.mu.Unlock()
	if lease == 0 {
		lease = DefaultLease
	}
	if jump := s.clock.observe(storeNow, sent, read, lease, margin(lease)); jump != 0 {
		s.fence.opts.Logger.Warn("the fence store's clock jumped: no takeovers for one lease", "jump", jump, "lease", lease)
	}
}

// margin is how much earlier than the store a holder sees its lease end, and
// the jump of the store's clock that is tolerated.
func margin(lease time.Duration) time.Duration { return lease / 4 }

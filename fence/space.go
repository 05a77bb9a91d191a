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

// Space is one namespace of a Fence, opened. It renews the leases of all
// claims made through it until they are dropped. All methods may be called from
// several goroutines.
type Space struct {
	fence *Fence
	ns    Namespace
	text  string
	clock clock
	grade driver.Grade
	epoch [16]byte
	now   func() time.Time

	mu         sync.Mutex // taken before a Hold's
	closed     bool
	holds      []*Hold
	next       time.Time // when the loop looks at them again
	shortest   time.Duration
	longest    time.Duration // lease in use
	orphans    []orphan
	orphanAt   time.Time // not before
	orphanWait time.Duration
	releasing  bool // a release of orphans is under way

	wake     chan struct{}
	stop     context.CancelFunc
	requests sync.WaitGroup // of the loop
	done     chan struct{}
}

// Open checks the store's grade, finds or makes the namespace's marker, learns
// the store's clock and starts to renew. Close ends that. Errors match
// ErrEviction and ErrGrade where those are the reason.
func (f *Fence) Open(ctx context.Context, ns Namespace) (*Space, error) {
	if ns.IsZero() {
		return nil, errors.New("open fence: the namespace is empty: make it with fence.NewNamespace")
	}
	grade, err := f.check(ctx)
	if err != nil {
		return nil, err
	}
	s := &Space{
		fence: f, ns: ns, text: ns.Text(), grade: grade, now: f.now,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	marker, err := s.Mark(ctx, driver.Marker{})
	if err != nil {
		return nil, err
	}
	if marker.Now == 0 || marker.Epoch == ([16]byte{}) {
		return nil, fmt.Errorf("open fence: the store answered a marker of namespace %s without its clock or epoch: the store is at fault", s.text)
	}
	s.epoch = marker.Epoch
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	go s.loop(background)
	return s, nil
}

// Namespace returns the space's namespace.
func (s *Space) Namespace() Namespace { return s.ns }

// Grade returns the store's grade as read by Open.
func (s *Space) Grade() driver.Grade { return s.grade }

// Epoch returns the marker's epoch id as read by Open. Keep it outside the
// store and compare it at the next start: another one means that sealed keys
// are missing.
func (s *Space) Epoch() [16]byte { return s.epoch }

// Retention is how long sealed keys are kept; 0 means without end.
func (s *Space) Retention() time.Duration { return s.fence.opts.Retention }

// Close stops renewing and refuses further claims. Holders that have not
// dropped their claim are told at once (OnLost), since nobody would tell them
// later; their leases end by themselves, and until somebody takes over Apply
// still writes their outcome. Claims whose answer never came are released; while
// one can still arrive Close waits for it, at most for Options.ClaimTimeout and
// a little. An error says that ctx ended before all that. Close may be called
// again.
func (s *Space) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	holds := s.holds
	s.holds = nil
	for _, h := range holds {
		h.place = -1
	}
	s.mu.Unlock()
	s.stop()
	for _, h := range holds {
		h.close()
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		return fmt.Errorf("close namespace %s: a renewal is still under way: %w", s.text, ctx.Err())
	}
	return s.releaseLast(ctx)
}

func (s *Space) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Apply sends a batch of transitions once, no key twice, and answers in order.
// Transitions are made by the methods of Hold. It blocks for the store's answer
// or the end of ctx. An Err means failed or unknown: sending the transition
// again is safe. Without Err the Outcome says whether it was written: OK,
// Repeated, Vanished and Late were, Refused was not.
func (s *Space) Apply(ctx context.Context, transitions []driver.Transition) []driver.Applied {
	if send, places, out := admitTransitions(transitions); out != nil {
		for i, a := range s.apply(ctx, "apply", send) {
			out[places[i]] = a
		}
		return out
	}
	return s.apply(ctx, "apply", transitions)
}

// admitTransitions finds those that no store could write. out is nil if there
// are none.
func admitTransitions(transitions []driver.Transition) (send []driver.Transition, places []int, out []driver.Applied) {
	seen := keySet()
	defer seen.free()
	var wrong map[int]error
	for i := range transitions {
		t := &transitions[i]
		var err error
		switch sealing := t.Op == driver.Seal || t.Op == driver.Resolve && t.Applied; {
		case seen.twice(t.Key):
			err = fmt.Errorf("%s %x: the key stands twice in the batch: send it in the next one", t.Op, t.Key)
		case sealing && !driver.ValidEffectID(t.EffectID):
			err = fmt.Errorf("%s %x: the effect id has %d bytes: it must have 1 to %d and no control characters", t.Op, t.Key, len(t.EffectID), driver.MaxEffectID)
		}
		if err != nil {
			if wrong == nil {
				wrong = make(map[int]error)
			}
			wrong[i] = err
		}
	}
	if wrong == nil {
		return nil, nil, nil
	}
	out = make([]driver.Applied, len(transitions))
	for i := range transitions {
		if out[i].Err = wrong[i]; out[i].Err == nil {
			send, places = append(send, transitions[i]), append(places, i)
		}
	}
	return send, places, out
}

func (s *Space) apply(ctx context.Context, op string, transitions []driver.Transition) []driver.Applied {
	if len(transitions) == 0 {
		return nil
	}
	sent := s.now()
	answers := s.fence.store.Apply(ctx, s.text, transitions)
	read := s.now()
	failed := 0
	var now int64
	for i := range answers {
		now = earlier(now, answers[i].Now)
		if answers[i].Err != nil {
			failed++
			answers[i].Err = fmt.Errorf("%s %x: %w", transitions[i].Op, transitions[i].Key, answers[i].Err)
		}
	}
	s.observe(now, sent, read)
	s.fence.opts.Observer.StoreCall(op, len(transitions), failed, read.Sub(sent))
	return answers
}

// Now estimates the store's clock.
func (s *Space) Now() time.Time {
	micros, _ := s.clock.estimate(s.now())
	return driver.Time(micros)
}

// Get reads records; a key without one answers State Absent.
func (s *Space) Get(ctx context.Context, keys []driver.Digest) ([]driver.Record, error) {
	start := s.now()
	records, err := s.fence.store.Get(ctx, s.text, keys)
	s.fence.opts.Observer.StoreCall("get", len(keys), failures(err), s.now().Sub(start))
	if err != nil {
		return nil, fmt.Errorf("get %d records of namespace %s: %w", len(keys), s.text, err)
	}
	return records, nil
}

// Scan calls yield for the records that the filter lets through, in no order.
func (s *Space) Scan(ctx context.Context, filter driver.Filter, yield func(driver.Digest, driver.Record) bool) error {
	start := s.now()
	err := s.fence.store.Scan(ctx, s.text, filter, yield)
	s.fence.opts.Observer.StoreCall("scan", 1, failures(err), s.now().Sub(start))
	if err != nil {
		return fmt.Errorf("scan namespace %s: %w", s.text, err)
	}
	return nil
}

// Purge removes expired records, at most limit.
func (s *Space) Purge(ctx context.Context, limit int) (int, error) {
	start := s.now()
	n, err := s.fence.store.Purge(ctx, s.text, limit)
	s.fence.opts.Observer.StoreCall("purge", n, failures(err), s.now().Sub(start))
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
	sent := s.now()
	marker, err := s.fence.store.Marker(ctx, s.text, update)
	read := s.now()
	s.fence.opts.Observer.StoreCall("marker", 1, failures(err), read.Sub(sent))
	if err != nil {
		return marker, fmt.Errorf("read the marker of namespace %s: %w", s.text, err)
	}
	s.observe(marker.Now, sent, read)
	if marker.Format != driver.FormatVersion {
		return marker, fmt.Errorf("namespace %s holds records of format %d, this program writes %d: use the release that wrote them, or another namespace", s.text, marker.Format, driver.FormatVersion)
	}
	if s.epoch != ([16]byte{}) && marker.Epoch != s.epoch {
		return marker, fmt.Errorf("%w: namespace %s had epoch %x and has %x now: the store was emptied or is another one; sealed keys are missing", ErrEpoch, s.text, s.epoch, marker.Epoch)
	}
	return marker, nil
}

// uses notes the leases of a batch and returns the jump of the store's clock
// that every holder of this process survives.
func (s *Space) uses(shortest, longest time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shortest == 0 || shortest < s.shortest {
		s.shortest = shortest
	}
	s.longest = max(s.longest, longest)
	return margin(s.shortest)
}

func (s *Space) observe(storeNow int64, sent, read time.Time) {
	s.mu.Lock()
	shortest, longest := s.shortest, s.longest
	s.mu.Unlock()
	if longest == 0 {
		shortest, longest = DefaultLease, DefaultLease
	}
	if jump := s.clock.observe(storeNow, sent, read, longest, margin(shortest)); jump != 0 {
		s.fence.opts.Logger.Warn("the fence store's clock jumped against this machine's: no takeovers for one lease", "namespace", s.text, "jump", jump, "lease", longest)
	}
}

package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// orphan is a claim whose answer never came.
type orphan struct {
	key   driver.Digest
	nonce driver.Nonce
	until int64 // store time after which the claim cannot arrive any more
}

// Waits between two releases of the same orphans, and the limit of one request.
const (
	orphanWaitMin = 100 * time.Millisecond
	orphanWaitMax = time.Second
	orphanTimeout = time.Second
)

// Abandon gives up requests whose last answer was an error: if the store made
// the claim all the same, or makes it when a delayed request arrives, it is
// released as soon as the store can be reached. Requests that were answered, or
// never sent, are left alone. Abandon does not block. A Request may ask anew
// afterwards.
func (s *Space) Abandon(requests ...*Request) {
	s.mu.Lock()
	for _, r := range requests {
		if r.nonce != (driver.Nonce{}) {
			s.orphans = append(s.orphans, orphan{key: r.Key.digest, nonce: r.nonce, until: r.notAfter})
			s.orphanAt, s.orphanWait = time.Time{}, orphanWaitMin
			r.forget()
		}
	}
	s.mu.Unlock()
	s.nudge()
}

// dueOrphans takes the orphans to release now, or says how long until then.
func (s *Space) dueOrphans(now time.Time) (due []orphan, wait time.Duration) {
	switch {
	case len(s.orphans) == 0 || s.releasing:
		return nil, time.Hour
	case now.Before(s.orphanAt):
		return nil, s.orphanAt.Sub(now)
	}
	due, s.orphans, s.releasing = s.orphans, nil, true
	return due, time.Hour
}

// releaseOrphans sends one release for each and keeps those that have to be
// released again: the store could not be reached, or the claim can still
// arrive.
func (s *Space) releaseOrphans(ctx context.Context, orphans []orphan) error {
	var untried, left []orphan
	var err error
	for _, batch := range orphanBatches(orphans) {
		if err != nil { // do not wait for an absent store once more
			untried = append(untried, batch...)
			continue
		}
		transitions := make([]driver.Transition, len(batch))
		for i, o := range batch {
			transitions[i] = driver.Transition{Op: driver.Release, Key: o.key, Nonce: o.nonce}
		}
		reach, cancel := context.WithTimeout(ctx, orphanTimeout)
		for i, a := range s.apply(reach, "apply", transitions) {
			switch {
			case errors.Is(a.Err, driver.ErrUnreadable), a.Outcome == driver.OK, a.Outcome == driver.Repeated:
			case a.Err != nil:
				err = a.Err
				left = append(left, batch[i])
			case a.Now <= batch[i].until:
				left = append(left, batch[i])
			}
		}
		cancel()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orphans = append(append(untried, left...), s.orphans...) // what failed waits for its turn
	s.releasing = false
	if len(s.orphans) > 0 {
		s.orphanAt = s.now().Add(s.orphanWait)
		s.orphanWait = min(2*s.orphanWait, orphanWaitMax)
	}
	return err
}

// orphanBatches splits orphans into batches of renewBatch without a key twice.
func orphanBatches(orphans []orphan) (batches [][]orphan) {
	before := make(map[driver.Digest]int, len(orphans)) // orphans of the same key
	var rounds [][]orphan
	for _, o := range orphans {
		n := before[o.key]
		before[o.key]++
		if n == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[n] = append(rounds[n], o)
	}
	for _, round := range rounds {
		batches = slices.AppendSeq(batches, slices.Chunk(round, renewBatch))
	}
	return batches
}

// releaseLast releases orphans until none is left, ctx ends, or they had their
// time.
func (s *Space) releaseLast(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.fence.opts.ClaimTimeout+2*orphanTimeout)
	defer cancel()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for wait := orphanWaitMin; ; wait = min(2*wait, orphanWaitMax) {
		s.mu.Lock()
		orphans := s.orphans
		s.orphans = nil
		s.mu.Unlock()
		err := s.releaseOrphans(ctx, orphans)
		s.mu.Lock()
		left := len(s.orphans)
		s.mu.Unlock()
		if left == 0 {
			return nil
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
			continue
		case <-ctx.Done():
		}
		if err == nil {
			err = ctx.Err()
		}
		return fmt.Errorf("%d claims of namespace %s whose answer never came may be left to their lease, in doubt: %w", left, s.text, err)
	}
}

package fence

import (
	"context"
	"errors"
	"fmt"
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
	var left []orphan
	var err error
	for len(orphans) > 0 {
		var rest []orphan
		batch, sent := make([]driver.Transition, 0, min(len(orphans), renewBatch)), []orphan(nil)
		seen := keySet()
		for _, o := range orphans {
			if len(batch) == renewBatch || seen.twice(o.key) {
				rest = append(rest, o)
				continue
			}
			batch = append(batch, driver.Transition{Op: driver.Release, Key: o.key, Nonce: o.nonce})
			sent = append(sent, o)
		}
		seen.free()
		reach, cancel := context.WithTimeout(ctx, orphanTimeout)
		for i, a := range s.apply(reach, "apply", batch) {
			switch {
			case errors.Is(a.Err, driver.ErrUnreadable), a.Outcome == driver.OK, a.Outcome == driver.Repeated:
			case a.Err != nil:
				err = a.Err
				left = append(left, sent[i])
			case a.Now <= sent[i].until:
				left = append(left, sent[i])
			}
		}
		cancel()
		orphans = rest
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orphans = append(s.orphans, left...)
	s.releasing = false
	if len(left) > 0 {
		s.orphanAt = s.now().Add(s.orphanWait)
		s.orphanWait = min(2*s.orphanWait, orphanWaitMax)
	}
	return err
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

package kafkasource

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
)

var _ kgo.HookGroupManageError = (*source)(nil)

// OnGroupManageError is a hook of the client, called when a session with the
// group has ended by an error, before the client joins again. A member that was
// fenced by a twin must not: it would fence the twin in turn.
func (s *source) OnGroupManageError(err error) {
	if errors.Is(err, kerr.UnreleasedInstanceID) && !s.outOfPatience() {
		return
	}
	if advice(err) != "" {
		s.die(err)
	}
}

// patience is how long an instance id may be held by somebody else. A member
// that was killed holds its own until its session ends, which with KIP-848 is
// at most group.consumer.max.session.timeout.ms: 60 s if nobody changed it.
const patience = 75 * time.Second

// outOfPatience says whether the instance id has been held for that long.
func (s *source) outOfPatience() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreleased.IsZero() {
		s.unreleased = time.Now()
	}
	return time.Since(s.unreleased) > patience
}

// advice says what to do about an error after which the member can never get
// records again, nothing for all others.
func advice(err error) string {
	switch {
	case errors.Is(err, kerr.FencedInstanceID):
		return "another member runs with the same instance id; give each its own"
	case errors.Is(err, kerr.UnreleasedInstanceID):
		return "another member holds this instance id; give each its own"
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return "the client may not read this group; allow it READ on the group"
	case errors.Is(err, kerr.InconsistentGroupProtocol):
		return "the group's other members use another protocol; stop them first, or move them to cooperative-sticky"
	case errors.Is(err, kerr.InvalidSessionTimeout):
		return "the brokers do not take this session timeout; keep it within their group.min and group.max.session.timeout.ms"
	case errors.Is(err, kerr.InvalidGroupID):
		return "the brokers do not take this group name"
	case errors.Is(err, kerr.UnsupportedAssignor):
		return "the brokers do not offer the assignor that was asked for"
	}
	return ""
}

// die ends the member's life in the group for good. It may be called from any
// goroutine and more than once.
func (s *source) die(err error) {
	s.fatality.Do(func() {
		s.fatalErr = fmt.Errorf("group %s: %w: %w: %s", s.group, driver.ErrFatal, err, advice(err))
		close(s.fatal)
		// Without it the client joins again. It does not wait.
		_ = s.client.LeaveGroupContext(nil) //nolint:staticcheck // nil is how kgo is told not to wait
	})
}

func (s *source) isDead() bool {
	select {
	case <-s.fatal:
		return true
	default:
		return false
	}
}

package kafkasource

import (
	"context"
	"fmt"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Close implements [driver.Source]. What the member still has is revoked first,
// with commits possible until Handler.Revoked has returned. The error says that
// ctx ended before the group was left: the group then waits for the session
// timeout, and a handler that does not heed its context keeps a goroutine until
// it returns.
func (s *source) Close(ctx context.Context) error {
	s.mu.Lock()
	again := s.closing
	s.closing = true
	client := s.client
	s.mu.Unlock()
	s.wake()
	switch {
	case client == nil:
		s.end()
		return nil
	case again:
		select {
		case <-s.life.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	left := make(chan error, 1)
	go func() {
		client.AllowRebalance() // nothing is being polled for that
		err := client.LeaveGroupContext(ctx)
		client.CloseAllowingRebalance()
		left <- err
	}()
	var err error
	select {
	case err = <-left:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	s.closed = true
	s.holdings = map[driver.TopicPartition]*holding{}
	s.pending = nil
	s.mu.Unlock()
	s.end()
	if err != nil {
		return fmt.Errorf("group %s was not left: %w", s.group, err)
	}
	return nil
}

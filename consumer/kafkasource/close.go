package kafkasource

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

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
		err := client.LeaveGroupContext(ctx)
		if s.options.InstanceID != "" && s.joined.Load() == joinedNextGen && !s.isDead() {
			err = s.stepAside(ctx)
		}
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

// stepAside tells the brokers that a static member of a KIP-848 group will be
// back, so that its instance id is free for the next member at once and not
// only when the session has ended. The client (franz-go 1.22) sends this without
// the instance id, which Kafka refuses.
func (s *source) stepAside(ctx context.Context) error {
	member, epoch := s.client.GroupMetadata()
	if epoch <= 0 {
		return nil // never joined
	}
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = s.group, member, -2
	req.InstanceID = &s.options.InstanceID
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return err
	}
	switch err := kerr.ErrorForCode(resp.ErrorCode); {
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.GroupIDNotFound):
		return nil // gone already
	default:
		return err
	}
}

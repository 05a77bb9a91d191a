package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Start implements [driver.Source]. It returns when the topics and the group
// have been looked at; joining goes on after that.
func (s *source) Start(ctx context.Context, extra []driver.Subscription, handler driver.Handler) error {
	if err := s.begin(handler); err != nil {
		return err
	}
	all := slices.Clone(s.topics)
	for _, sub := range extra {
		all = append(all, sub.Topic)
	}
	if twice := repeated(all); twice != "" {
		return fmt.Errorf("group %s: topic %s is subscribed to twice", s.group, twice)
	}
	client, err := kgo.NewClient(s.kopts...)
	if err != nil {
		return fmt.Errorf("group %s: client: %w", s.group, err)
	}
	s.mu.Lock()
	s.client, s.admin, s.started = client, kadm.NewClient(client), true
	s.mu.Unlock()
	if err := s.look(ctx, all); err != nil {
		_ = s.Close(ctx) // has not joined: there is nothing to leave
		return fmt.Errorf("group %s: %w", s.group, err)
	}
	client.AddConsumeTopics(all...)
	if s.options.WatermarkInterval > 0 {
		go s.watch()
	}
	return nil
}

// begin checks that this is the first call.
func (s *source) begin(handler driver.Handler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return driver.ErrClosed
	case s.handler != nil:
		return errors.New("source was started before: make a new one")
	case handler == nil:
		return errors.New("source needs a handler")
	}
	s.handler = handler
	return nil
}

// look finds out what is to be known before joining. It asks for nothing that
// changes anything.
func (s *source) look(ctx context.Context, all []string) error {
	var details kadm.TopicDetails
	var missing []string
	patience := time.Now().Add(newsTimeout)
	err := retry(ctx, func() (err error) {
		// Asking for rights too passes the client's cache by.
		if details, err = s.admin.ListTopics(kadm.WithAuthorizedOps(ctx), all...); err != nil {
			return err
		}
		missing, err = absent(details, all)
		if kerr.IsRetriable(err) && time.Now().Before(patience) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("topics cannot be looked at: %w", err)
	}
	for _, name := range all {
		if err := details[name].Err; err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("topic %s: %w", name, err)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no such topic: %s; create it, the source does not", strings.Join(missing, ", "))
	}
	var positions kadm.OffsetResponses
	err = retry(ctx, func() (err error) {
		positions, err = s.admin.FetchOffsetsForTopics(ctx, s.group, s.topics...)
		return err
	})
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("committed positions cannot be read: %w", err)
	}
	retention := s.longest(ctx)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.retention = retention
	for _, name := range all {
		facts := &topicFacts{extra: !slices.Contains(s.topics, name), begun: map[int32]struct{}{}}
		facts.learn(details[name])
		facts.first = facts.partitions
		facts.adopt = !facts.extra
		for _, p := range positions[name] {
			if p.Err == nil && p.At >= 0 {
				facts.adopt = false
			}
		}
		s.known[name] = facts
	}
	return nil
}

// newsTimeout is how long a topic that is missing gets to become known: one that
// was made a moment ago, as the loop makes its retry topics, is not known to all
// brokers at once.
const newsTimeout = 2 * time.Second

// absent returns the topics that the brokers do not know, and the first error
// that keeps one of all from being used.
func absent(details kadm.TopicDetails, all []string) (missing []string, first error) {
	for _, name := range all {
		err := details[name].Err
		if !details.Has(name) {
			err = kerr.UnknownTopicOrPartition
		}
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			missing = append(missing, name)
		}
		if first == nil {
			first = err
		}
	}
	return missing, first
}

// retry repeats what failed in a way that passes, as with a cluster that has
// just been started, until ctx ends.
func retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || !kerr.IsRetriable(err) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// learn takes over what the metadata say today.
func (f *topicFacts) learn(d kadm.TopicDetail) {
	f.id, f.partitions = d.ID, int32(len(d.Partitions))
}

// longest is the longest retention of the source's own topics: 0 if one of them
// is not known, negative if one has no end.
func (s *source) longest(ctx context.Context) time.Duration {
	configs, err := s.admin.DescribeTopicConfigs(ctx, s.topics...)
	if err != nil {
		return 0
	}
	var longest time.Duration
	for _, name := range s.topics {
		config, err := configs.On(name, nil)
		if err != nil || config.Err != nil {
			return 0
		}
		switch r := retention(config); {
		case r == 0:
			return 0
		case r < 0 || longest < 0:
			longest = -1
		default:
			longest = max(longest, r)
		}
	}
	return longest
}

// retention reads a topic's configuration.
func retention(config kadm.ResourceConfig) time.Duration {
	var kept time.Duration
	for _, c := range config.Configs {
		switch c.Key {
		case "cleanup.policy":
			if c.Value != nil && !strings.Contains(*c.Value, "delete") {
				return -1 // compacted: the newest record of a key stays
			}
		case "retention.ms":
			if c.Value == nil {
				continue
			}
			ms, err := strconv.ParseInt(*c.Value, 10, 64)
			switch {
			case err != nil:
			case ms < 0 || ms > int64(1<<63-1)/int64(time.Millisecond):
				kept = -1
			default:
				kept = max(time.Duration(ms)*time.Millisecond, 1)
			}
		}
	}
	return kept
}

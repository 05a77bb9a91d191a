package consumertest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/oncefence/oncefence/consumer/driver"
)

var startRules = []Rule{
	{
		Name: "start/info", Says: "Info names system, group and topics at any time, and the protocol once the member has joined",
		check: func(s *scene) {
			topic := s.topic(1)
			m := s.open(topic)
			info := m.source.Info()
			s.want(info.System != "" && info.Group == s.group && slices.Equal(info.Topics, []string{topic}), "before start it is %+v", info)
			m.start()
			m.poll(100)
			s.holds(m, of(topic, 0))
			info = m.source.Info()
			s.want(info.Protocol != "", "no protocol once the member has joined: %+v", info)
			s.want(info.RebalanceTimeout > 0, "no rebalance timeout: %+v", info)
			s.want(info.Group == s.group && slices.Equal(info.Topics, []string{topic}), "after start it is %+v", info)
		},
	},
	{
		Name: "start/missing-topic", Says: "a topic that does not exist is an error of Start that names it, and is not made",
		check: func(s *scene) {
			topic := s.topic(1)
			missing := s.group + "-missing"
			for range 2 { // the second time tells whether the first made it
				m := s.open(topic, missing)
				ctx, cancel := s.patient()
				err := s.starts(ctx, m)
				cancel()
				s.want(err != nil && strings.Contains(err.Error(), missing), "start says %v, want an error that names %s", err, missing)
			}
			m := s.open(topic)
			ctx, cancel := s.patient()
			defer cancel()
			err := s.starts(ctx, m, driver.Subscription{Topic: missing})
			s.want(err != nil && strings.Contains(err.Error(), missing), "start with it as extra subscription says %v", err)
		},
	},
	{
		Name: "start/once", Says: "a second Start is an error and changes nothing",
		check: func(s *scene) {
			topic := s.topic(1)
			m := s.start(topic)
			s.holds(m, of(topic, 0))
			s.want(s.starts(s.ctx, m) != nil, "the second start succeeded")
			s.produce(of(topic, 0), 3)
			s.gets(m, of(topic, 0), 0, 3)
		},
	},
	{
		Name: "start/after-close", Says: "Start after Close is an error, and Close before Start is none",
		check: func(s *scene) {
			m := s.open(s.topic(1))
			m.stop()
			s.want(s.starts(s.ctx, m) != nil, "start after close succeeded")
		},
	},
	{
		Name: "start/context", Says: "Start heeds its context",
		check: func(s *scene) {
			m := s.open(s.topic(1))
			ctx, cancel := context.WithCancel(s.ctx)
			cancel()
			err := s.starts(ctx, m)
			s.want(errors.Is(err, context.Canceled), "start with a context that has ended says %v", err)
		},
	},
	{
		Name: "start/extra", Says: "an extra subscription is read from its beginning, beside the source's own topics",
		check: func(s *scene) {
			topic, extra := s.topic(1), s.topic(2)
			s.produce(of(topic, 0), 2)
			s.produce(of(extra, 1), 3)
			m := s.open(topic)
			m.start(extra)
			m.poll(100)
			s.holds(m, of(topic, 0), of(extra, 0), of(extra, 1))
			s.gets(m, of(extra, 1), 0, 3)
			s.gets(m, of(topic, 0), 0, 2)
			s.want(slices.Equal(m.source.Info().Topics, []string{topic}), "Info names the extra topic among the source's own: %v", m.source.Info().Topics)
		},
	},
}

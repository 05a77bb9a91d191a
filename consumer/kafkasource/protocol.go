package kafkasource

import (
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kgo falls back from KIP-848 to the classic protocol without a word. Which one
// is in use shows in the requests that brokers answer: members of the one join
// with JoinGroup, those of the other with ConsumerGroupHeartbeat. A fallback
// sends the second before the first, once.
const (
	joinedClassic = int32(kmsg.JoinGroup)
	joinedNextGen = int32(kmsg.ConsumerGroupHeartbeat)
)

var _ kgo.HookBrokerE2E = (*source)(nil)

// OnBrokerE2E is a hook of the client.
func (s *source) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if k := int32(key); e2e.Err() == nil && (k == joinedClassic || k == joinedNextGen) {
		s.joined.Store(k)
	}
}

// protocol tells the protocol in use, nothing before the member has joined.
func (s *source) protocol() string {
	if !s.started {
		return ""
	}
	if _, generation := s.client.GroupMetadata(); generation <= 0 {
		return ""
	}
	switch s.joined.Load() {
	case joinedClassic:
		return "classic (" + s.balancer + ")"
	case joinedNextGen:
		return "consumer (KIP-848)"
	}
	return ""
}

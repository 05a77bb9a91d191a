package kafkasource_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/kafkasource"
)

// occupant is a static member of a KIP-848 group that does nothing but to be
// there.
type occupant struct {
	client *kgo.Client
	group  string
	topic  string
	epoch  int32
}

func (o *occupant) beat(t *testing.T) {
	t.Helper()
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	instance := "id"
	req.Group, req.MemberID, req.MemberEpoch, req.InstanceID = o.group, "occupant", o.epoch, &instance
	req.RebalanceTimeoutMillis = 10_000
	req.SubscribedTopicNames = []string{o.topic}
	req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	resp, err := req.RequestWith(t.Context(), o.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.epoch = resp.MemberEpoch
}

// A member that was killed holds its instance id until its session ends; a twin
// holds it for ever.
func TestInstanceIDThatSomebodyElseHolds(t *testing.T) {
	for _, alive := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var network kfake.VirtualNetwork
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(9092), kfake.ListenFn(network.Listen), kfake.SeedTopics(1, "topic"))
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Close()
			dial := []kgo.Opt{kgo.SeedBrokers("localhost:9092"), kgo.Dialer(network.DialContext)}
			client, err := kgo.NewClient(dial...)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			o := &occupant{client: client, group: "group", topic: "topic"}
			o.beat(t)

			source, err := kafkasource.New("group", []string{"topic"}, &kafkasource.Options{InstanceID: "id", NextGenProtocol: true}, dial...)
			if err != nil {
				t.Fatal(err)
			}
			m := &member{Source: source, t: t, held: map[driver.TopicPartition]driver.Assignment{}}
			if err := m.Start(t.Context(), nil, m); err != nil {
				t.Fatal(err)
			}
			defer m.Close(context.Background())
			begin := time.Now()
			for len(m.held) == 0 && !errors.Is(m.pollErr, driver.ErrFatal) && time.Since(begin) < 10*time.Minute {
				m.pollFor(time.Second)
				if alive {
					o.beat(t)
				}
			}
			took := time.Since(begin)
			if fatal := errors.Is(m.pollErr, driver.ErrFatal); fatal != alive || took < 40*time.Second || took > 2*time.Minute {
				t.Errorf("the other is alive: %v; fatal: %v after %v; poll said %v", alive, fatal, took, m.pollErr)
			}
			if alive && !errors.Is(m.pollErr, kerr.UnreleasedInstanceID) {
				t.Errorf("poll says %v", m.pollErr)
			}
		})
	}
}

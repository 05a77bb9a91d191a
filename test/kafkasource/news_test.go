package kafkasource_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/kafkasource"
)

// The loop makes its retry topics and starts the source a moment later, when not
// every broker knows of them. A topic that never comes is an error soon.
func TestStartWaitsForATopicThatWasJustMade(t *testing.T) {
	for _, made := range []bool{true, false} {
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
			source, err := kafkasource.New("group", []string{"topic"}, nil, dial...)
			if err != nil {
				t.Fatal(err)
			}
			m := &member{Source: source, t: t, held: map[driver.TopicPartition]driver.Assignment{}}
			begin, started := time.Now(), make(chan error, 1)
			go func() { started <- m.Start(t.Context(), []driver.Subscription{{Topic: "retry"}}, m) }()
			if made {
				<-time.After(500 * time.Millisecond)
				if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, nil, "retry"); err != nil {
					t.Fatal(err)
				}
			}
			err = <-started
			defer m.Close(context.Background())
			if (err == nil) != made || time.Since(begin) > 4*time.Second {
				t.Errorf("the topic is made: %v; start says %v after %v", made, err, time.Since(begin))
			}
		})
	}
}

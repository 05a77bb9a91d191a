package kafkasource_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/oncefence/oncefence/consumer/kafkasource"
	"github.com/oncefence/oncefence/test/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// fake starts a cluster in this process.
func fake(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(1),
		kfake.GroupMinSessionTimeout(100 * time.Millisecond),
		kfake.BrokerConfigs(map[string]string{
			"group.consumer.heartbeat.interval.ms": "100",
			"group.consumer.session.timeout.ms":    "2000",
		}),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

func TestFakeContractClassic(t *testing.T) {
	newWorld(t, fake(t).ListenAddrs()).contract(t, kafkasource.Options{}, "classic (cooperative-sticky)")
}

func TestFakeContractNextGen(t *testing.T) {
	newWorld(t, fake(t).ListenAddrs()).contract(t, kafkasource.Options{NextGenProtocol: true}, "consumer (KIP-848)")
}

func TestKafkaContractClassic(t *testing.T) {
	newWorld(t, servers.Kafka(t).Brokers()).contract(t, kafkasource.Options{}, "classic (cooperative-sticky)")
}

func TestKafkaContractNextGen(t *testing.T) {
	newWorld(t, servers.Kafka(t).Brokers()).contract(t, kafkasource.Options{NextGenProtocol: true}, "consumer (KIP-848)")
}

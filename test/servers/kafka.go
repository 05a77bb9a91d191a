package servers

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// KafkaOptions says what kind of Kafka is wanted. nil means all defaults.
type KafkaOptions struct {
	// From restricts the search to one origin. Default: all, in order.
	From Origin
	// Own asks for a cluster that nobody else uses: KAFKA_BROKERS is passed
	// over. Brokers above 1 and Properties imply it.
	Own bool
	// Brokers is the number of brokers, each of which is also a controller.
	// Default: 1; negative is refused. More than one only come as programs.
	Brokers int
	// Properties are lines of server.properties that are added to the defaults
	// or replace them.
	Properties map[string]string
}

func (o KafkaOptions) own() bool { return o.Own || o.Brokers > 1 || len(o.Properties) > 0 }

// properties are what every broker gets that is started here, KRaft and
// listeners apart: no wait for a group's first members, sessions as short as a
// test likes, small internal topics, and no topics that nobody made.
func (o KafkaOptions) properties() map[string]string {
	replicas := strconv.Itoa(min(o.Brokers, 3))
	inSync := strconv.Itoa(min(o.Brokers, 2))
	p := map[string]string{
		"auto.create.topics.enable":                        "false",
		"default.replication.factor":                       replicas,
		"group.initial.rebalance.delay.ms":                 "0",
		"group.min.session.timeout.ms":                     "100",
		"group.consumer.min.session.timeout.ms":            "1000",
		"group.consumer.session.timeout.ms":                "6000",
		"group.consumer.min.heartbeat.interval.ms":         "100",
		"group.consumer.heartbeat.interval.ms":             "500",
		"offsets.topic.num.partitions":                     "4",
		"offsets.topic.replication.factor":                 replicas,
		"transaction.state.log.num.partitions":             "4",
		"transaction.state.log.replication.factor":         replicas,
		"transaction.state.log.min.isr":                    inSync,
		"share.coordinator.state.topic.num.partitions":     "1",
		"share.coordinator.state.topic.replication.factor": replicas,
		"share.coordinator.state.topic.min.isr":            inSync,
	}
	maps.Copy(p, o.Properties)
	return p
}

// KafkaServer is a Kafka cluster that answers.
type KafkaServer struct {
	origin  Origin
	brokers []string
	stop    func() error
}

// Brokers returns host:port of every broker, for kgo.SeedBrokers.
func (s *KafkaServer) Brokers() []string { return s.brokers }

// Origin says where the cluster came from.
func (s *KafkaServer) Origin() Origin { return s.origin }

// Close kills brokers that were started here and removes their files; a cluster
// that was found by address stays.
func (s *KafkaServer) Close() error { return s.stop() }

func (s *KafkaServer) where() string { return strings.Join(s.brokers, ",") }

// StartKafka finds or starts a Kafka cluster and returns when all of its brokers
// answer. Brokers that are started here make no topics on their own. The
// context bounds the start only. The error is [ErrMissing] when there is none
// to be had.
func StartKafka(ctx context.Context, opts *KafkaOptions) (*KafkaServer, error) {
	o := KafkaOptions{}
	if opts != nil {
		o = *opts
	}
	switch {
	case o.Brokers < 0:
		return nil, fmt.Errorf("kafka: %d brokers: use 1 or more, 0 means 1", o.Brokers)
	case o.Brokers == 0:
		o.Brokers = 1
	}
	return find(
		ctx, "kafka", o.From,
		way[*KafkaServer]{Address, func(ctx context.Context) (*KafkaServer, error) { return kafkaAddress(ctx, o) }},
		way[*KafkaServer]{Docker, func(ctx context.Context) (*KafkaServer, error) { return kafkaDocker(ctx, o) }},
		way[*KafkaServer]{Program, func(ctx context.Context) (*KafkaServer, error) { return kafkaProgram(ctx, o) }},
	)
}

func kafkaAddress(ctx context.Context, o KafkaOptions) (*KafkaServer, error) {
	raw := os.Getenv("KAFKA_BROKERS")
	if raw == "" {
		return nil, absent("KAFKA_BROKERS is not set")
	}
	if o.own() {
		return nil, absent("KAFKA_BROKERS is shared and a cluster of one's own was asked for")
	}
	s := &KafkaServer{origin: Address, brokers: strings.Split(raw, ","), stop: leave}
	return s, answers(ctx, s, pingKafka)
}

// pingKafka asks the first broker that answers for the others, and each of the
// addresses for itself.
func pingKafka(ctx context.Context, s *KafkaServer) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer client.Close()
	known, err := kadm.NewClient(client).BrokerMetadata(ctx)
	if err != nil {
		return err
	}
	if s.origin != Address && len(known.Brokers) < len(s.brokers) {
		return fmt.Errorf("%d of %d brokers are up", len(known.Brokers), len(s.brokers))
	}
	return client.Ping(ctx)
}

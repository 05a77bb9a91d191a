package fieldfaults_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/kafkasource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/memfence"
	"github.com/oncefence/oncefence/requeue/kafkarequeue"
)

// BL-050: a topic is deleted and made again. Records with an id of their own
// that was sealed before are duplicates, and said to be; records that are known
// by their offset are new, since the topic's id is part of it.
func TestATopicThatIsMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		withID              bool
		applied, duplicates int // in the end
	}{
		"own ids": {true, 10, 5},
		"offsets": {false, 15, 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKafka(t)
			f, err := fence.New(memfence.NewStore(nil), &fence.Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			l, o := &ledger{}, &told{decisions: map[string]int{}}
			run := func(generation string, first, last, settled int) {
				t.Helper()
				for i := first; i <= last; i++ {
					r := &kgo.Record{Topic: topic, Value: fmt.Append(nil, generation, i)}
					if c.withID {
						r.Value = fmt.Append(nil, i)
						r.Headers = []kgo.RecordHeader{{Key: "idempotency-key", Value: fmt.Append(nil, i)}}
					}
					if err := k.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
						t.Fatal(err)
					}
				}
				_, stop := start(t, k.source(t), f, effect.Idempotent(l.book, forever()), k.options(t, o))
				until(t, fmt.Sprint(settled, " decisions"), func() bool {
					return o.count(consumer.DecisionDone)+o.count(consumer.DecisionDuplicate) == settled
				})
				stop()
			}
			k.create(t)
			run("old ", 1, 5, 5)
			if _, err := k.admin.DeleteTopic(t.Context(), topic); err != nil {
				t.Fatal(err)
			}
			k.create(t)
			run("new ", 1, 10, 15)
			if one, more := l.once(); one != c.applied || more != 0 || o.count(consumer.DecisionDuplicate) != c.duplicates {
				t.Errorf("%d booked once, %d more often, %d duplicates", one, more, o.count(consumer.DecisionDuplicate))
			}
			at, err := k.admin.FetchOffsetsForTopics(t.Context(), group, topic)
			if err != nil || at[topic][0].At != 10 {
				t.Errorf("committed %v, %v, want 10", at[topic][0].At, err)
			}
		})
	}
}

// kafka is an embedded cluster and a client that does what is done from outside.
type kafka struct {
	brokers kgo.Opt
	client  *kgo.Client
	admin   *kadm.Client
}

func newKafka(t *testing.T) *kafka {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	k := &kafka{brokers: kgo.SeedBrokers(cluster.ListenAddrs()...)}
	k.client, err = kgo.NewClient(k.brokers, kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.client.Close)
	k.admin = kadm.NewClient(k.client)
	return k
}

func (k *kafka) create(t *testing.T) {
	t.Helper()
	until(t, "the topic", func() bool {
		_, err := k.admin.CreateTopic(t.Context(), 1, 1, nil, topic)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) { // it goes away with some delay
			t.Fatal(err)
		}
		return err == nil
	})
	k.client.PurgeTopicsFromClient(topic) // it may know the old one
}

func (k *kafka) source(t *testing.T) driver.Source {
	t.Helper()
	s, err := kafkasource.New(group, []string{topic}, nil, k.brokers, kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (k *kafka) options(t *testing.T, o consumer.Observer) *consumer.Options {
	t.Helper()
	p, err := kafkarequeue.New(&kafkarequeue.Options{Log: slog.New(slog.DiscardHandler)}, k.brokers)
	if err != nil {
		t.Fatal(err)
	}
	return &consumer.Options{Producer: p, Logger: slog.New(slog.DiscardHandler), Observer: o, EndlessTopics: true}
}

// until waits for a condition, half a minute at most.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

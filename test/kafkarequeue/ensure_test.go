package kafkarequeue_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/requeue"
	"github.com/oncefence/oncefence/requeue/kafkarequeue"
)

const day = 24 * time.Hour

func TestEnsureMakesTopicsLikeTheirSource(t *testing.T) {
	both(t, func(t *testing.T, brokers []string) {
		a := newAdmin(t, brokers)
		source := a.make(t, unique("orders"), 5, map[string]string{"max.message.bytes": "123456", "retention.ms": "259200000"})
		topics, err := requeue.NewTopics([]string{source}, requeue.Names{Group: "billing"}, requeue.Schedule{})
		if err != nil {
			t.Fatal(err)
		}
		p := newProducer(t, nil, kgo.SeedBrokers(brokers...))
		before := a.config(t, source)
		specs := topics.Specs(3 * day)
		ensure(t, p, specs...)
		ensure(t, p, specs...) // and takes what it made
		for _, spec := range specs {
			config := a.config(t, spec.Topic)
			want := map[string]string{
				"cleanup.policy": "delete", "max.message.bytes": strconv.Itoa(123456 + 65536), "retention.bytes": "-1",
				"retention.ms": "259200000", "message.timestamp.type": "LogAppendTime", "min.insync.replicas": "1",
			}
			if spec.Topic == topics.DeadLetter(source) {
				want["retention.ms"], want["message.timestamp.type"] = "518400000", "CreateTime"
			}
			for name, value := range want {
				if config[name] != value {
					t.Errorf("%s: %s is %q, want %q", spec.Topic, name, config[name], value)
				}
			}
		}
		all, err := a.ListTopics(t.Context(), append(topics.Subscriptions(), topics.DeadLetter(source))...)
		if err != nil {
			t.Fatal(err)
		}
		for _, detail := range all {
			if len(detail.Partitions) != 5 {
				t.Errorf("%s has %d partitions, want 5 as the source", detail.Topic, len(detail.Partitions))
			}
		}
		if after := a.config(t, source); len(after) == 0 || !sameConfig(before, after) {
			t.Errorf("the source topic's settings changed from %v to %v", before, after)
		}
	})
}

func sameConfig(a, b map[string]string) bool {
	for name := range a {
		if a[name] != b[name] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestEnsureRefusesTopicsThatWouldLoseCopies(t *testing.T) {
	both(t, func(t *testing.T, brokers []string) {
		a := newAdmin(t, brokers)
		source := a.make(t, unique("orders"), 3, map[string]string{"max.message.bytes": "200000"})
		p := newProducer(t, nil, kgo.SeedBrokers(brokers...))
		for _, c := range []struct {
			name   string
			config map[string]string
			want   []string
		}{
			{"as it should be", map[string]string{"retention.ms": "3600000"}, nil},
			{"without end", map[string]string{"retention.ms": "-1"}, nil},
			{"compacted", map[string]string{"cleanup.policy": "compact"}, []string{`cleanup.policy is "compact"`, "--add-config cleanup.policy=delete"}},
			{"compacted and deleted", map[string]string{"cleanup.policy": "compact,delete"}, []string{"cleanup.policy"}},
			{"short", map[string]string{"retention.ms": "3599999"}, []string{`retention.ms is "3599999"`, "--add-config retention.ms=3600000"}},
			{"small", map[string]string{"max.message.bytes": "199999"}, []string{`max.message.bytes is "199999"`, "--add-config max.message.bytes=200000"}},
			{"all at once", map[string]string{"max.message.bytes": "1000", "retention.ms": "1"}, []string{"max.message.bytes", "retention.ms"}},
		} {
			topic := a.make(t, unique("copies"), 3, c.config)
			err := p.Ensure(t.Context(), []driver.TopicSpec{{Topic: topic, Like: source, Retention: time.Hour}})
			want := c.want
			if want != nil {
				want = append(want, topic)
			}
			wantErrors(t, c.name, err, want...)
		}
	})
}

func TestEnsureComparesReplicas(t *testing.T) {
	cluster := fake(t, kfake.NumBrokers(3))
	a := newAdmin(t, cluster.ListenAddrs())
	source, copies := unique("orders"), unique("copies")
	for topic, replicas := range map[string]int16{source: 3, copies: 1} {
		config := map[string]*string{}
		if topic == source {
			config["min.insync.replicas"] = kadm.StringPtr("2")
		}
		if resp, err := a.CreateTopic(t.Context(), 1, replicas, config, topic); err != nil || resp.Err != nil {
			t.Fatal(err, resp.Err)
		}
	}
	p := newProducer(t, nil, kgo.SeedBrokers(cluster.ListenAddrs()...))
	err := p.Ensure(t.Context(), []driver.TopicSpec{{Topic: copies, Like: source}})
	wantErrors(t, "fewer replicas", err, "it has 1 replicas", "min.insync.replicas", copies)

	made := unique("made")
	ensure(t, p, driver.TopicSpec{Topic: made, Like: source})
	if info := cluster.TopicInfo(made); info.NumReplicas != 3 || *info.Configs["min.insync.replicas"] != "2" {
		t.Errorf("made with %d replicas and %v, want 3 and 2", info.NumReplicas, *info.Configs["min.insync.replicas"])
	}
}

func TestEnsureNeverMakesASourceTopic(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, brokers []string) {
		p := newProducer(t, nil, kgo.SeedBrokers(brokers...))
		source := unique("orders")
		specs := []driver.TopicSpec{{Topic: source + ".dlq", Like: source}}
		wantErrors(t, "missing source", p.Ensure(t.Context(), specs), "source topic "+source+" does not exist")
		listed, err := newAdmin(t, brokers).ListTopics(t.Context(), source, source+".dlq")
		if err != nil {
			t.Fatal(err)
		}
		for _, detail := range listed {
			if !errors.Is(detail.Err, kerr.UnknownTopicOrPartition) {
				t.Errorf("topic %s: %v, want it unknown still", detail.Topic, detail.Err)
			}
		}
		specs = append(specs, driver.TopicSpec{Topic: source, Like: "other"})
		wantErrors(t, "source as copy topic", p.Ensure(t.Context(), specs), "is a source topic")
	})
}

func TestCreateNeverSaysHowTo(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, brokers []string) {
		a := newAdmin(t, brokers)
		source := a.make(t, unique("orders"), 4, nil)
		p := newProducer(t, &kafkarequeue.Options{Create: kafkarequeue.CreateNever, Log: quiet}, kgo.SeedBrokers(brokers...))
		topic := source + ".g.retry.1s"
		err := p.Ensure(t.Context(), []driver.TopicSpec{{Topic: topic, Like: source, Retention: time.Hour, AppendTime: true}})
		wantErrors(t, "missing topic", err,
			"topic "+topic+" does not exist", "--create --topic "+topic+" --partitions 4 --replication-factor 1",
			"--config cleanup.policy=delete", "--config message.timestamp.type=LogAppendTime", "--config retention.ms=3600000")
		if errs := p.Produce(t.Context(), []driver.Record{{Topic: topic}}); errs[0] == nil || !strings.Contains(errs[0].Error(), "Ensure") {
			t.Errorf("produce to a topic that was refused: %v", errs[0])
		}
	})
}

func TestWhatIsToleratedIsSaid(t *testing.T) {
	both(t, func(t *testing.T, brokers []string) {
		a := newAdmin(t, brokers)
		source := a.make(t, unique("orders"), 3, nil)
		copies := a.make(t, unique("copies"), 2, map[string]string{"retention.bytes": "1000000"})
		var log bytes.Buffer
		p := newProducer(t, &kafkarequeue.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, kgo.SeedBrokers(brokers...))
		ensure(t, p, driver.TopicSpec{Topic: copies, Like: source, AppendTime: true})
		for _, want := range []string{"no append time", "2 partitions, its source topic 3", "retention.bytes", "topic=" + copies} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %q:\n%s", want, log.String())
			}
		}
	})
}

func TestTwoMembersMakeTheSameTopics(t *testing.T) {
	both(t, func(t *testing.T, brokers []string) {
		source := newAdmin(t, brokers).make(t, unique("orders"), 2, nil)
		spec := driver.TopicSpec{Topic: source + ".g.dlq", Like: source, Retention: day}
		var wg sync.WaitGroup
		for range 4 {
			p := newProducer(t, nil, kgo.SeedBrokers(brokers...))
			wg.Go(func() {
				if err := p.Ensure(t.Context(), []driver.TopicSpec{spec}); err != nil {
					t.Error(err)
				}
				if err := p.Produce(t.Context(), []driver.Record{{Topic: spec.Topic}})[0]; err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestEnsurePassesOnWhatTheBrokerRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		key  kmsg.Key
		err  *kerr.Error
		want string
	}{
		{"not allowed to make topics", kmsg.CreateTopics, kerr.TopicAuthorizationFailed, "cannot be made"},
		{"policy", kmsg.CreateTopics, kerr.PolicyViolation, "cannot be made"},
		{"not allowed to read settings", kmsg.DescribeConfigs, kerr.TopicAuthorizationFailed, "allow DescribeConfigs"},
		{"not allowed to see the topic", kmsg.Metadata, kerr.TopicAuthorizationFailed, "TOPIC_AUTHORIZATION_FAILED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
			p := newProducer(t, nil, kgo.SeedBrokers(cluster.ListenAddrs()...))
			fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{c.key}, Err: c.err, Count: -1})
			spec := driver.TopicSpec{Topic: "orders.g.dlq", Like: "orders"}
			wantErrors(t, c.name, p.Ensure(t.Context(), []driver.TopicSpec{spec}), c.want)
			if fault.Hits() == 0 {
				t.Error("the fault was not met")
			}
		})
	}
}

package kafkarequeue_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// admin is what tests do to a cluster besides producing.
type admin struct {
	*kadm.Client
	brokers []string
}

func newAdmin(t testing.TB, brokers []string) admin {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return admin{kadm.NewClient(client), brokers}
}

// make creates a topic and returns its name.
func (a admin) make(t testing.TB, topic string, partitions int32, config map[string]string) string {
	t.Helper()
	values := map[string]*string{}
	for name, value := range config {
		values[name] = kadm.StringPtr(value)
	}
	if resp, err := a.CreateTopic(t.Context(), partitions, 1, values, topic); err != nil || resp.Err != nil {
		t.Fatal(err, resp.Err)
	}
	return topic
}

// config returns a topic's settings.
func (a admin) config(t testing.TB, topic string) map[string]string {
	t.Helper()
	all, err := a.DescribeTopicConfigs(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]string{}
	for _, c := range all[0].Configs {
		config[c.Key] = c.MaybeValue()
	}
	return config
}

// records returns the number of records in a topic.
func (a admin) records(t testing.TB, topic string) int64 {
	t.Helper()
	ends, err := a.ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if err := ends.Error(); err != nil {
		t.Fatal(err)
	}
	var n int64
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n
}

// read returns the first n records of a topic; it waits for them.
func (a admin) read(t testing.TB, topic string, n int) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(a.brokers...), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var all []*kgo.Record
	for len(all) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d of %d records of topic %s: %v", len(all), n, topic, err)
		}
		all = append(all, fetches.Records()...)
	}
	return all
}

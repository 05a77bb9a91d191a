package kafkasource

import (
	"context"
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

func TestOptionsThatWouldBreakThePromiseAreRefusedByName(t *testing.T) {
	callback := func(context.Context, *kgo.Client, map[string][]int32) {}
	for name, opts := range map[string][]kgo.Opt{
		"kgo.ConsumerGroup":               {kgo.ConsumerGroup("another")},
		"kgo.ConsumeTopics":               {kgo.ConsumeTopics("another")},
		"kgo.ConsumeRegex":                {kgo.ConsumeRegex()},
		"kgo.ConsumeExcludeTopics":        {kgo.ConsumeExcludeTopics("x"), kgo.ConsumeRegex()},
		"kgo.ConsumePartitions":           {kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset()}})},
		"kgo.ShareGroup":                  {kgo.ShareGroup("g")},
		"kgo.InstanceID":                  {kgo.InstanceID("i")},
		"kgo.ServerSideBalancer":          {kgo.ServerSideBalancer()},
		"kgo.ConsumeStartOffset":          {kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd())},
		"kgo.ConsumeResetOffset":          {kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())},
		"kgo.AutoCommitMarks":             {kgo.AutoCommitMarks()},
		"kgo.GreedyAutoCommit":            {kgo.GreedyAutoCommit()},
		"kgo.AutoCommitInterval":          {kgo.AutoCommitInterval(time.Second)},
		"kgo.AutoCommitCallback":          {kgo.AutoCommitCallback(func(*kgo.Client, *kmsg.OffsetCommitRequest, *kmsg.OffsetCommitResponse, error) {})},
		"kgo.FetchIsolationLevel":         {kgo.FetchIsolationLevel(kgo.ReadUncommitted())},
		"kgo.TransactionalID":             {kgo.TransactionalID("t")},
		"kgo.Balancers":                   {kgo.Balancers(kgo.CooperativeStickyBalancer(), kgo.RangeBalancer())},
		"kgo.OnPartitionsAssigned":        {kgo.OnPartitionsAssigned(callback)},
		"kgo.OnPartitionsRevoked":         {kgo.OnPartitionsRevoked(callback)},
		"kgo.OnPartitionsLost":            {kgo.OnPartitionsLost(callback)},
		"kgo.OnPartitionsCallbackBlocked": {kgo.OnPartitionsCallbackBlocked(func(context.Context, *kgo.Client) {})},
		"kgo.OnOffsetsFetched":            {kgo.OnOffsetsFetched(func(context.Context, *kgo.Client, *kmsg.OffsetFetchResponse) error { return nil })},
		"kgo.AdjustFetchOffsetsFn": {kgo.AdjustFetchOffsetsFn(func(_ context.Context, m map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
			return m, nil
		})},
		"kgo.AllowAutoTopicCreation":   {kgo.AllowAutoTopicCreation()},
		"kgo.KeepRetryableFetchErrors": {kgo.KeepRetryableFetchErrors()},
		"kgo.WithContext":              {kgo.WithContext(context.Background())},
	} {
		_, err := New("group", []string{"topic"}, nil, opts...)
		if err == nil || !strings.Contains(err.Error(), name+" is refused") || !strings.Contains(err.Error(), "group group") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOptionsThatAreTheUsersBusiness(t *testing.T) {
	source, err := New(
		"group", []string{"topic"}, &Options{InstanceID: "i", NextGenProtocol: true},
		kgo.SeedBrokers("127.0.0.1:1"),
		kgo.DialTLSConfig(&tls.Config{ServerName: "kafka"}),
		kgo.SASL(plain.Auth{User: "u", Pass: "p"}.AsMechanism()),
		kgo.ClientID("c"),
		kgo.SessionTimeout(10*time.Second),
		kgo.RebalanceTimeout(20*time.Second),
		kgo.FetchMaxWait(time.Second),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.Rack("a"),
	)
	if err != nil {
		t.Fatal(err)
	}
	info := source.Info()
	if info.RebalanceTimeout != 20*time.Second || info.Group != "group" || info.Protocol != "" {
		t.Errorf("info %+v", info)
	}
	if err := source.Close(context.Background()); err != nil {
		t.Errorf("close before start: %v", err)
	}
}

// once counts how often the client calls a user's hook.
type once struct{ made, closed int }

func (o *once) OnNewClient(*kgo.Client)    { o.made++ }
func (o *once) OnClientClosed(*kgo.Client) { o.closed++ }

func TestUsersHooksSeeOneClient(t *testing.T) {
	o := &once{}
	source, err := New("group", []string{"topic"}, nil, kgo.WithHooks(o), kgo.SeedBrokers("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	if o.made != 0 {
		t.Error("looking at the options made a client that the user's hooks saw")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := source.Start(ctx, nil, nobody{}); err == nil {
		t.Fatal("start without a broker succeeded")
	}
	if err := source.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if o.made != 1 || o.closed != 1 {
		t.Errorf("the hooks saw %d clients made and %d closed, want 1 and 1", o.made, o.closed)
	}
}

func TestArgumentsOfNew(t *testing.T) {
	for words, c := range map[string]struct {
		group  string
		topics []string
		opts   *Options
		kopts  []kgo.Opt
	}{
		"no name":                {"", []string{"t"}, nil, nil},
		"no topics":              {"g", nil, nil, nil},
		"a topic has no name":    {"g", []string{"t", ""}, nil, nil},
		"topic t is named twice": {"g", []string{"t", "u", "t"}, nil, nil},
		"position 3":             {"g", []string{"t"}, &Options{Start: 3}, nil},
		"position -1":            {"g", []string{"t"}, &Options{OnReset: -1}, nil},
		"session timeout":        {"g", []string{"t"}, nil, []kgo.Opt{kgo.SessionTimeout(time.Millisecond)}},
	} {
		_, err := New(c.group, c.topics, c.opts, c.kopts...)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}

package kafkasource

import (
	"fmt"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// inspector looks at the options of a client that is just being made. kgo tells
// option values only by way of a client; a client that is complete would run
// goroutines, dial, and call the user's hooks a second time.
type inspector struct{ client *kgo.Client }

// errInspected ends the making of the client.
type errInspected struct{}

// OnNewClient is called before the client starts anything and before the hooks
// that the user gave.
func (i *inspector) OnNewClient(client *kgo.Client) {
	i.client = client
	panic(errInspected{})
}

// inspect returns a client that can be asked for option values, and only that.
// The client validates first, and some options only go with a group, others
// only without one.
func inspect(group string, opts []kgo.Opt) (*kgo.Client, error) {
	client, err := made(append([]kgo.Opt{kgo.ConsumerGroup(group)}, opts...))
	if err == nil {
		return client, nil
	}
	if client, other := made(opts); other == nil {
		if refused := refuse(client, ""); refused != nil {
			return nil, refused
		}
	}
	return nil, err
}

func made(opts []kgo.Opt) (client *kgo.Client, err error) {
	i := &inspector{}
	defer func() {
		if p := recover(); p != nil {
			if _, ours := p.(errInspected); !ours {
				panic(p)
			}
			client = i.client
		}
	}()
	if _, err := kgo.NewClient(append([]kgo.Opt{kgo.WithHooks(i)}, opts...)...); err != nil {
		return nil, fmt.Errorf("client options: %w", err)
	}
	return nil, fmt.Errorf("client options cannot be inspected: the client did not call its hook")
}

// refusal is an option that would break the promise, and why.
type refusal struct {
	option any
	set    func(client *kgo.Client, option any) bool
	why    string
}

// given: the option has a value that is not the zero value.
func given(client *kgo.Client, option any) bool {
	for _, v := range client.OptValues(option) {
		rv := reflect.ValueOf(v)
		switch {
		case !rv.IsValid() || rv.IsZero():
		case (rv.Kind() == reflect.Slice || rv.Kind() == reflect.Map) && rv.Len() == 0:
		default:
			return true
		}
	}
	return false
}

// not: the option has another value than this one.
func not(value any) func(*kgo.Client, any) bool {
	return func(client *kgo.Client, option any) bool { return client.OptValue(option) != value }
}

// eager: a balancer that takes all partitions from all members.
func eager(client *kgo.Client, option any) bool {
	for _, b := range client.OptValue(option).([]kgo.GroupBalancer) {
		if !b.IsCooperative() {
			return true
		}
	}
	return false
}

var refusals = []refusal{
	{kgo.ConsumeTopics, given, "the topics are an argument of New"},
	{kgo.ConsumeExcludeTopics, given, "the topics are an argument of New, by name"},
	{kgo.ConsumeRegex, given, "the topics are an argument of New, by name"},
	{kgo.ConsumePartitions, given, "partitions come from the group"},
	{kgo.ShareGroup, given, "a share group acknowledges records one by one and has no positions"},
	{kgo.InstanceID, given, "use Options.InstanceID"},
	{kgo.ServerSideBalancer, given, "use Options.NextGenProtocol"},
	{kgo.ConsumeStartOffset, not(startOffset), "use Options.Start"},
	{kgo.ConsumeResetOffset, not(resetOffset), "use Options.OnReset"},
	{kgo.AutoCommitMarks, given, "positions are committed only behind sealed records"},
	{kgo.GreedyAutoCommit, given, "positions are committed only behind sealed records"},
	{kgo.AutoCommitInterval, not(5 * time.Second), "positions are committed only behind sealed records"},
	{kgo.AutoCommitCallback, given, "positions are committed only behind sealed records"},
	{kgo.FetchIsolationLevel, not(int8(1)), "records of aborted transactions would run effects"},
	{kgo.TransactionalID, given, "positions are committed by the group, not in a transaction"},
	{kgo.Balancers, eager, "it takes all partitions from all members at each rebalance; use kgo.CooperativeStickyBalancer"},
	{kgo.OnPartitionsAssigned, given, "the source uses it"},
	{kgo.OnPartitionsRevoked, given, "the source uses it"},
	{kgo.OnPartitionsLost, given, "the source uses it"},
	{kgo.OnPartitionsCallbackBlocked, given, "the source never blocks it"},
	{kgo.OnOffsetsFetched, given, "the source uses it"},
	{kgo.AdjustFetchOffsetsFn, given, "the source uses it"},
	{kgo.AllowAutoTopicCreation, given, "the source never creates topics"},
	{kgo.KeepRetryableFetchErrors, given, "the client retries them"},
	{kgo.WithContext, not(nil), "the client lives until Close"},
}

// refuse returns an error that names the first option that cannot be had. The
// client was given the group before the user's options.
func refuse(client *kgo.Client, group string) error {
	rs := append([]refusal{{kgo.ConsumerGroup, not(group), "the group is an argument of New"}}, refusals...)
	for _, r := range rs {
		if r.set(client, r.option) {
			return fmt.Errorf("option %s is refused: %s", optionName(r.option), r.why)
		}
	}
	return nil
}

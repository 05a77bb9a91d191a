package kafkasource

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Position says where reading begins or goes on when the group has no position
// that can be read from.
type Position int8

// The positions. What the zero value means stands at the option.
const (
	Default Position = iota
	Earliest
	Latest
)

// Options configures a source. nil means all defaults.
type Options struct {
	// InstanceID makes the member static: it keeps its partitions over a
	// restart that is shorter than the session timeout, and Close does not
	// leave the group. No two running members of a group may have the same one:
	// the older is fenced (with KIP-848 the newer refused), which ends its loop.
	// Default: a dynamic member.
	InstanceID string
	// NextGenProtocol joins with the broker-side protocol of KIP-848. Brokers
	// that do not offer it get the classic protocol instead; Info().Protocol
	// tells which one it is. Default: classic, cooperative-sticky.
	NextGenProtocol bool
	// Start is where partitions begin of a topic for which the group has never
	// committed anything. Latest is for adopting the library on a topic whose
	// past is done with; take it out again later, since positions that have
	// expired, and a topic that was made anew, look the same. Partitions that are added to a topic later, and those of
	// extra subscriptions, begin at the beginning all the same. Default:
	// Earliest.
	Start Position
	// OnReset is where a partition goes on whose position is not in the log any
	// more, because retention removed it or the log was truncated: at the log's
	// start (Earliest) or its end (Latest); after a truncation that the brokers
	// can place, at the place where it was cut. Default: nowhere. The partition
	// stands still, each of the batches that say so has a [ResetError], and the
	// way out is to set this option or to commit another position while the
	// group is stopped.
	OnReset Position
	// WatermarkInterval is how often the watermarks of idle partitions are asked
	// for. Default 10 s; negative: never.
	WatermarkInterval time.Duration
}

// New returns a source that reads topics as a member of group. It connects to
// nothing yet: see [driver.Source.Start]. The error names what is missing or
// which of the client's options cannot be had.
func New(group string, topics []string, opts *Options, kopts ...kgo.Opt) (driver.Source, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.WatermarkInterval == 0 {
		o.WatermarkInterval = 10 * time.Second
	}
	for _, p := range []Position{o.Start, o.OnReset} {
		if p < Default || p > Latest {
			return nil, fmt.Errorf("kafka source: position %d is none of Earliest and Latest", p)
		}
	}
	switch {
	case group == "":
		return nil, errors.New("kafka source: the consumer group has no name")
	case len(topics) == 0:
		return nil, fmt.Errorf("kafka source: group %s has no topics to read", group)
	case slices.Contains(topics, ""):
		return nil, fmt.Errorf("kafka source: group %s: a topic has no name", group)
	}
	if twice := repeated(topics); twice != "" {
		return nil, fmt.Errorf("kafka source: group %s: topic %s is named twice", group, twice)
	}
	s := newSource(group, topics, o)
	if err := s.configure(kopts); err != nil {
		return nil, fmt.Errorf("kafka source: group %s: %w", group, err)
	}
	return s, nil
}

// repeated returns a name that comes twice, or nothing.
func repeated(names []string) string {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return name
		}
	}
	return ""
}

// defaults are what a user's options may replace.
func defaults() []kgo.Opt {
	return []kgo.Opt{
		kgo.FetchMaxWait(250 * time.Millisecond), // so that a resume is noticed soon
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeStartOffset(startOffset),
		kgo.ConsumeResetOffset(resetOffset),
	}
}

// A partition without a commit never gets that far: see assign.go. And a
// position that is gone is an error of the partition: see reset.go.
var (
	startOffset = kgo.NewOffset().AtStart()
	resetOffset = kgo.NoResetOffset()
)

// configure checks the user's options and completes them.
func (s *source) configure(kopts []kgo.Opt) error {
	opts := slices.Concat(defaults(), kopts)
	seen, err := inspect(s.group, opts)
	if err != nil {
		return err
	}
	if err := refuse(seen, s.group); err != nil {
		return err
	}
	s.rebalanceTimeout = seen.OptValue(kgo.RebalanceTimeout).(time.Duration)
	balancers := seen.OptValue(kgo.Balancers).([]kgo.GroupBalancer)
	s.balancer = "cooperative"
	if len(balancers) == 1 {
		s.balancer = balancers[0].ProtocolName()
	}
	opts = append(
		opts,
		kgo.WithContext(s.life),
		kgo.WithHooks(s),
		kgo.ConsumerGroup(s.group),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.KeepControlRecords(), // for Batch.NextFetch
		kgo.OnOffsetsFetched(s.onOffsetsFetched),
		kgo.AdjustFetchOffsetsFn(s.onAssigned),
		kgo.OnPartitionsRevoked(s.onRevoked),
		kgo.OnPartitionsLost(s.onLost),
	)
	if s.options.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(s.options.InstanceID))
	}
	if s.options.NextGenProtocol {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	s.kopts = opts
	return kgo.ValidateOpts(opts...)
}

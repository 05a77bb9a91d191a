package requeue

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Topics knows the source topics of a group and the retry and dead-letter
// topics that belong to them. It does not change after [NewTopics].
type Topics struct {
	schedule Schedule
	sources  []string
	places   map[string]Place
	own      map[string]ownTopics // by source topic
}

// ownTopics are the group's own topics for one source topic.
type ownTopics struct {
	retry   []Place // in use, shortest delay first
	retired []Place // only read
	dead    string
}

// NewTopics names all topics and checks the names: legal, at most 249 bytes,
// all different (a dot counts as an underscore, as brokers have it), and no
// source topic one of the group's own. A source topic named twice counts once.
// The errors say which topic, why, and what to change.
func NewTopics(sourceTopics []string, names Names, schedule Schedule) (*Topics, error) {
	if names.Group == "" {
		return nil, errors.New("topics: no group: set Names.Group")
	}
	if err := schedule.Validate(); err != nil {
		return nil, err
	}
	t := &Topics{schedule: schedule, places: map[string]Place{}, own: map[string]ownTopics{}}
	taken := map[string]string{} // by comparable name: the name itself
	for _, source := range sourceTopics {
		if err := names.checkSource(source); err != nil {
			return nil, err
		}
		if _, again := t.places[source]; !again {
			t.sources = append(t.sources, source)
			t.places[source] = Place{Topic: source, Source: source, Kind: SourceTopic}
			taken[clashName(source)] = source
		}
	}
	for _, source := range t.sources {
		if err := t.add(source, names, taken); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// add names the topics of one source topic.
func (t *Topics) add(source string, names Names, taken map[string]string) error {
	claim := func(p Place) error {
		if err := checkTopicName(p.Topic); err != nil {
			return fmt.Errorf("topics: %s topic %q of source topic %q: %w", p.Kind, p.Topic, source, err)
		}
		if other, clash := taken[clashName(p.Topic)]; clash {
			return fmt.Errorf("topics: %s topic %s of source topic %s clashes with %s: give each its own name with Names.Retry and Names.DeadLetter", p.Kind, p.Topic, source, other)
		}
		taken[clashName(p.Topic)] = p.Topic
		t.places[p.Topic] = p
		return nil
	}
	var own ownTopics
	used := sortedDelays(t.schedule.delays())
	for _, delay := range used {
		p := t.retryPlace(source, names, delay)
		if err := claim(p); err != nil {
			return err
		}
		own.retry = append(own.retry, p)
	}
	for _, delay := range sortedDelays(t.schedule.Retired) {
		if slices.Contains(used, delay) {
			continue
		}
		p := t.retryPlace(source, names, delay)
		if err := claim(p); err != nil {
			return err
		}
		own.retired = append(own.retired, p)
	}
	own.dead = names.deadLetter(source)
	if err := claim(Place{Topic: own.dead, Source: source, Kind: DeadLetterTopic}); err != nil {
		return err
	}
	t.own[source] = own
	return nil
}

func (t *Topics) retryPlace(source string, names Names, delay time.Duration) Place {
	return Place{
		Topic: names.retry(source, delay), Source: source, Kind: RetryTopic,
		Delay: delay, Longest: t.schedule.longest(delay),
	}
}

// Lookup says what a topic is to the group; false if it is nothing to it.
func (t *Topics) Lookup(topic string) (Place, bool) {
	p, ok := t.places[topic]
	return p, ok
}

// Subscriptions returns the retry topics to read besides the source topics,
// those of retired delays included.
func (t *Topics) Subscriptions() []string {
	var topics []string
	for _, source := range t.sources {
		own := t.own[source]
		for _, p := range slices.Concat(own.retry, own.retired) {
			topics = append(topics, p.Topic)
		}
	}
	return topics
}

// RetryTopic returns the retry topic in which a copy waits that is to wait for
// delay: the one with the longest delay that jitter can have turned into delay
// or less, so the copy is not kept for longer than it should; else the shortest.
// What is left to wait when it leaves that topic is [Hop]'s answer. It returns
// "" if source is no source topic or the schedule has no retries.
func (t *Topics) RetryTopic(source string, delay time.Duration) string {
	retry := t.own[source].retry
	for _, p := range slices.Backward(retry) {
		if t.schedule.shortest(p.Delay) <= delay {
			return p.Topic
		}
	}
	return t.Shortest(source)
}

// Shortest returns the retry topic with the shortest delay, "" if source is no
// source topic or the schedule has no retries.
func (t *Topics) Shortest(source string) string {
	if retry := t.own[source].retry; len(retry) > 0 {
		return retry[0].Topic
	}
	return ""
}

// DeadLetter returns the dead-letter topic of a source topic, "" if source is
// none.
func (t *Topics) DeadLetter(source string) string { return t.own[source].dead }

// Sources returns the source topics in the order in which they were given.
func (t *Topics) Sources() []string { return slices.Clone(t.sources) }

// sortedDelays returns the different delays, the shortest first.
func sortedDelays(delays []time.Duration) []time.Duration {
	sorted := slices.Clone(delays)
	slices.SortFunc(sorted, cmp.Compare)
	return slices.Compact(sorted)
}

// clashName returns what two names that brokers do not tell apart have in
// common: metric names write a dot as an underscore, so a broker refuses the
// second of such two topics.
func clashName(name string) string { return strings.ReplaceAll(name, ".", "_") }

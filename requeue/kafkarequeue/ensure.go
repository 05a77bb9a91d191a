package kafkarequeue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/oncefence/oncefence/consumer/driver"
)

const (
	// readyTimeout is how long topics that were made may take to have leaders.
	readyTimeout = 30 * time.Second
	// newsTimeout is how long a topic that is missing gets to become known: one
	// that was made a moment ago is not known to all brokers at once.
	newsTimeout = 2 * time.Second
	readyPoll   = 50 * time.Millisecond
)

// Ensure checks the topics against their specs and, unless Options.Create says
// otherwise, makes those that are missing. It changes no topic that exists, and
// never touches a source topic.
//
// Refused are: a missing source topic; a copy topic that compacts (it would drop
// copies of the same key), keeps records for too short a time, takes smaller
// records than the source topic, or has fewer replicas or a lower
// min.insync.replicas. The error names every fault of every topic and the
// command that mends it.
//
// Tolerated with a warning are: a retry topic without the broker's append time
// (delays then count from receipt, so a copy that is delivered twice waits
// twice), fewer partitions than the source topic, and retention.bytes, which may
// remove copies before their time.
//
// A topic that is made gets the source topic's partitions, replicas and
// min.insync.replicas, room for the library's headers on top of its
// max.message.bytes, and the retention of the spec. Ensure returns when all
// partitions have leaders, or with an error after 30 s. Another member that
// makes the same topics at the same time does no harm.
func (p *producer) Ensure(ctx context.Context, specs []driver.TopicSpec) error {
	names, err := namesOf(specs)
	if err != nil {
		return err
	}
	seen, err := p.waitKnown(ctx, specs, names)
	if err != nil {
		return err
	}
	var missing []driver.TopicSpec
	for _, spec := range specs {
		if _, there := seen[spec.Like]; !there {
			return fmt.Errorf("kafka requeue: source topic %s does not exist: create it first, it is never made here", spec.Like)
		}
		if _, there := seen[spec.Topic]; !there {
			missing = append(missing, spec)
		}
	}
	if len(missing) > 0 {
		if err := p.create(ctx, missing, seen); err != nil {
			return err
		}
		if seen, err = p.waitReady(ctx, names); err != nil {
			return err
		}
	}
	var faults []error
	for _, spec := range specs {
		bad, tolerated := judge(spec, seen[spec.Topic], seen[spec.Like])
		for _, text := range tolerated {
			p.log.WarnContext(ctx, text, "topic", spec.Topic, "like", spec.Like)
		}
		for _, text := range bad {
			faults = append(faults, fmt.Errorf("kafka requeue: topic %s: %s", spec.Topic, text))
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, spec := range specs {
		p.limits[spec.Topic] = seen[spec.Topic].number(maxMessageBytes, unknownLimit)
	}
	return nil
}

// namesOf returns all topics that the specs speak of, each once.
func namesOf(specs []driver.TopicSpec) ([]string, error) {
	sources, once := map[string]bool{}, map[string]bool{}
	var names []string
	for _, spec := range specs {
		sources[spec.Like] = true
	}
	for _, spec := range specs {
		if sources[spec.Topic] {
			return nil, fmt.Errorf("kafka requeue: topic %s is asked for as a copy topic and is a source topic: give it another name", spec.Topic)
		}
		for _, name := range []string{spec.Topic, spec.Like} {
			if !once[name] {
				once[name] = true
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// waitKnown looks at the topics, again for a while if one is missing that will
// not be made.
func (p *producer) waitKnown(ctx context.Context, specs []driver.TopicSpec, names []string) (map[string]topic, error) {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for end := time.Now().Add(newsTimeout); ; {
		seen, err := p.look(ctx, names)
		if err != nil {
			return nil, err
		}
		missing := false
		for _, spec := range specs {
			_, source := seen[spec.Like]
			_, copies := seen[spec.Topic]
			missing = missing || !source || !copies && p.opts.Create == CreateNever
		}
		if !missing || time.Now().After(end) {
			return seen, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return seen, nil
		}
	}
}

// waitReady waits until every topic is known and every partition has a leader.
func (p *producer) waitReady(ctx context.Context, names []string) (map[string]topic, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		seen, err := p.look(ctx, names)
		unready := ""
		for _, name := range names {
			if t, there := seen[name]; !there || !t.ready {
				unready = name
			}
		}
		if err == nil && unready == "" {
			return seen, nil
		}
		if err != nil && !kerr.IsRetriable(err) {
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("kafka requeue: topic %s was made but has no leaders yet: %w", unready, errors.Join(context.Cause(ctx), err))
		}
	}
}

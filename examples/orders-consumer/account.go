package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/requeue"
)

// tally says how each line ended.
type tally struct {
	Orders      int `json:"orders"`
	Applied     int `json:"applied"`
	Duplicates  int `json:"duplicates"`
	Conflicts   int `json:"conflicts"`
	DeadLetters int `json:"dead_letters"`
	Lost        int `json:"lost"`
}

func (t tally) sum() int { return t.Applied + t.Duplicates + t.Conflicts + t.DeadLetters + t.Lost }

// account works out what became of each line, from its coordinates, the fence,
// the dead letters and the group's positions, and from nothing that a consumer
// counted.
func account(ctx context.Context, b *broker, store *fence.Fence, ns fence.Namespace, lines []line) (tally, error) {
	t := tally{Orders: len(lines)}
	dead, err := deadLetters(ctx, b)
	if err != nil {
		return t, err
	}
	positions, err := b.positions(ctx)
	if err != nil {
		return t, err
	}
	keys := make([]fencedriver.Digest, len(lines))
	for i, l := range lines {
		keys[i] = fence.RecordKey(fence.ScopeID, b.topic, l.partition, fence.Nil, fence.Text(l.orderID)).Digest()
	}
	const chunk = 1000
	for start := 0; start < len(lines); start += chunk {
		end := min(start+chunk, len(lines))
		records, err := store.Store().Get(ctx, ns.Text(), keys[start:end])
		if err != nil {
			return t, err
		}
		for i, l := range lines[start:end] {
			at := coordinates{l.partition, l.offset}
			if l.offset >= positions[l.partition] {
				t.Lost++ // the group never got that far
				continue
			}
			t.add(l, at, &records[i], dead[at])
		}
	}
	return t, nil
}

type coordinates struct {
	partition int32
	offset    int64
}

// add files one line. dead is the reason of its own dead letter, "" if there is
// none.
func (t *tally) add(l line, at coordinates, r *fencedriver.Record, dead string) {
	holder := coordinates{r.Origin.Partition, r.Origin.Offset}
	switch {
	case l.orderID == "" || r.State == fencedriver.Absent:
		t.deadOrLost(dead)
	case at != holder && r.Fingerprint == fence.FingerprintOf(l.value):
		t.Duplicates++
	case at != holder && dead == "conflict":
		t.Conflicts++
	case at != holder:
		t.Lost++
	case r.State == fencedriver.Done:
		t.Applied++
	case r.State == fencedriver.Dead:
		t.deadOrLost(dead)
	default: // still pending or requeued: nobody will go on with it
		t.Lost++
	}
}

func (t *tally) deadOrLost(dead string) {
	if dead == "" {
		t.Lost++
	} else {
		t.DeadLetters++
	}
}

// deadLetters returns the reasons in the dead-letter topic by the coordinates
// of the originals.
func deadLetters(ctx context.Context, b *broker) (map[coordinates]string, error) {
	records, err := b.readAll(ctx, b.dead)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", b.dead, err)
	}
	dead := make(map[coordinates]string, len(records))
	for _, r := range records {
		rec := driver.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			rec.Headers = append(rec.Headers, driver.Header{Key: h.Key, Value: h.Value})
		}
		c, _, err := requeue.Decode(rec)
		if err != nil {
			return nil, fmt.Errorf("dead letter at %s:%d:%d: %w", r.Topic, r.Partition, r.Offset, err)
		}
		dead[coordinates{c.Origin.Partition, c.Origin.Offset}] = cmp.Or(c.Reason, "unknown")
	}
	return dead, nil
}

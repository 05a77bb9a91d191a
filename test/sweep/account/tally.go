package account

import (
	"context"
	"fmt"
	"strings"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/requeue"
	"github.com/oncefence/oncefence/test/sweep/ledger"
)

// Tally says how lines ended. Each ends as exactly one of Applied, Duplicates,
// Conflicts, DeadLetters and Lost.
type Tally struct {
	Lines       int
	Applied     int
	Duplicates  int
	Conflicts   int
	DeadLetters int
	Lost        int
	// Parked are the dead letters in doubt: a person decides.
	Parked int
	// Crashed are the dead letters of records that took processes down.
	Crashed int
	// Twice are bookings beyond the first of an order.
	Twice int
	// Wrong are lines about which the fence and the ledger disagree: sealed and
	// never booked, or dead without doubt and booked.
	Wrong int
	// Faults says in words what is lost, twice or wrong.
	Faults []string
}

// Add sums up.
func (t *Tally) Add(o Tally) {
	t.Lines += o.Lines
	t.Applied += o.Applied
	t.Duplicates += o.Duplicates
	t.Conflicts += o.Conflicts
	t.DeadLetters += o.DeadLetters
	t.Lost += o.Lost
	t.Parked += o.Parked
	t.Crashed += o.Crashed
	t.Twice += o.Twice
	t.Wrong += o.Wrong
	t.Faults = append(t.Faults, o.Faults...)
}

func (t *Tally) lost(l Line, format string, args ...any) {
	t.Lost++
	t.Faults = append(t.Faults, fmt.Sprintf("lost %s at %d:%d %s: ", l.Order, l.Partition, l.Offset, l.Value)+fmt.Sprintf(format, args...))
}

func (t *Tally) wrong(l Line, format string, args ...any) {
	t.Wrong++
	t.Faults = append(t.Faults, fmt.Sprintf("wrong %s at %d:%d %s: ", l.Order, l.Partition, l.Offset, l.Value)+fmt.Sprintf(format, args...))
}

type coordinates struct {
	partition int32
	offset    int64
}

// Take works out what became of the lines. store is nil for at-least-once, where
// a line is applied when the ledger has it.
func Take(ctx context.Context, b *Broker, store *fence.Fence, book *ledger.Ledger, lines []Line) (Tally, error) {
	t := Tally{Lines: len(lines)}
	dead, letters, err := deadLetters(ctx, b)
	if err != nil {
		return t, err
	}
	positions, err := b.positions(ctx)
	if err != nil {
		return t, err
	}
	records := make([]fencedriver.Record, len(lines))
	if store != nil {
		ns, err := fence.NewNamespace(fence.Nil, b.Group)
		if err != nil {
			return t, err
		}
		keys := make([]fencedriver.Digest, len(lines))
		for i, l := range lines {
			keys[i] = fence.RecordKey(fence.ScopeID, b.Topic, l.Partition, fence.Nil, fence.Text(l.Order)).Digest()
		}
		if records, err = store.Store().Get(ctx, ns.Text(), keys); err != nil {
			return t, err
		}
	}
	for i, l := range lines {
		at, lostBefore := coordinates{l.Partition, l.Offset}, t.Lost
		if l.Offset >= positions[l.Partition] {
			t.lost(l, "the group never got that far: it is at %d", positions[l.Partition])
			continue
		}
		if store == nil {
			t.unfenced(l, dead[at], book)
		} else {
			t.fenced(l, at, &records[i], dead[at], book)
			if t.Lost > lostBefore {
				t.Faults = append(t.Faults, fmt.Sprintf("  record %+v; dead letters of its key: %v", records[i], letters[keyText(l.Order)]))
			}
		}
	}
	for _, order := range book.Twice() {
		t.Twice += book.Booked(order) - 1
		t.Faults = append(t.Faults, fmt.Sprintf("order %s was booked %d times", order, book.Booked(order)))
	}
	return t, nil
}

func (t *Tally) unfenced(l Line, dead string, book *ledger.Ledger) {
	switch {
	case l.Order != "" && book.Booked(l.Order) > 0:
		t.Applied++
	case dead != "":
		t.DeadLetters++
	default:
		t.lost(l, "neither booked nor a dead letter")
	}
}

func (t *Tally) fenced(l Line, at coordinates, r *fencedriver.Record, dead string, book *ledger.Ledger) {
	holder := coordinates{r.Origin.Partition, r.Origin.Offset}
	booked := book.Booked(l.Order)
	switch {
	case l.Order == "" || r.State == fencedriver.Absent:
		t.deadOrLost(l, r, dead)
	case at != holder && r.Fingerprint == fence.FingerprintOf(l.Value):
		t.Duplicates++
	case at != holder && dead == "conflict":
		t.Conflicts++
	case at != holder:
		t.lost(l, "the key is held by the line at %v, and this one is no dead letter", holder)
	case r.State == fencedriver.Done:
		t.Applied++
		if booked == 0 {
			t.wrong(l, "sealed and not booked")
		}
	case r.State == fencedriver.Dead:
		t.deadOrLost(l, r, dead)
		if !r.InDoubt && booked > 0 {
			t.wrong(l, "dead without doubt (%s) and booked", r.Reason)
		}
	default: // still pending or requeued: nobody will go on with it
		t.lost(l, "%s, attempt %d, verdict %s", r.State, r.Attempt, r.Verdict)
	}
}

func (t *Tally) deadOrLost(l Line, r *fencedriver.Record, dead string) {
	if dead == "" {
		t.lost(l, "%s and no dead letter", r.State)
		return
	}
	t.DeadLetters++
	if r.InDoubt {
		t.Parked++
	}
	if strings.HasPrefix(dead, "crashed ") {
		t.Crashed++
	}
}

// keyText is the canonical key of an order.
func keyText(order string) string {
	return fence.RecordKey(fence.ScopeID, "", 0, fence.Nil, fence.Text(order)).Text()
}

// deadLetters returns the reasons in the dead-letter topic by the coordinates of
// the originals, and all coordinates and reasons by key.
func deadLetters(ctx context.Context, b *Broker) (map[coordinates]string, map[string][]string, error) {
	records, err := b.readAll(ctx, b.Dead)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", b.Dead, err)
	}
	dead := make(map[coordinates]string, len(records))
	letters := make(map[string][]string, len(records))
	for _, r := range records {
		rec := driver.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			rec.Headers = append(rec.Headers, driver.Header{Key: h.Key, Value: h.Value})
		}
		c, _, err := requeue.Decode(rec)
		if err != nil {
			return nil, nil, fmt.Errorf("dead letter at %s:%d:%d: %w", r.Topic, r.Partition, r.Offset, err)
		}
		dead[coordinates{c.Origin.Partition, c.Origin.Offset}] = c.Reason
		letters[c.KeyText] = append(letters[c.KeyText], fmt.Sprintf("%d:%d attempt %d, %s", c.Origin.Partition, c.Origin.Offset, c.Attempt, c.Reason))
	}
	return dead, letters, nil
}

package fieldfaults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
)

// BL-118: what each policy for records without an id can tell apart. The hash of
// the payload takes a refreshed field for another event and two equal events for
// one; an extractor goes by the fields that it is told; offsets tell all apart.
func TestWhatTellsTwoEventsApart(t *testing.T) {
	declared := func(r consumer.Record) (string, error) {
		var event struct{ Order int }
		err := json.Unmarshal(r.Value, &event)
		return fmt.Sprint(event.Order), err
	}
	const sent, refreshed, other = `{"order":1,"sentAt":1}`, `{"order":1,"sentAt":2}`, `{"order":2,"sentAt":1}`
	for name, c := range map[string]struct {
		change   func(*consumer.Options)
		payloads []string
		runs     int
	}{
		"hash, equal events":       {func(o *consumer.Options) { o.MissingID = consumer.MissingPayloadHash }, []string{sent, sent, other}, 2},
		"hash, refreshed field":    {func(o *consumer.Options) { o.MissingID = consumer.MissingPayloadHash }, []string{sent, refreshed}, 2},
		"fields, equal events":     {func(o *consumer.Options) { o.DedupeID = declared }, []string{sent, sent, other}, 2},
		"offsets, equal events":    {func(*consumer.Options) {}, []string{sent, sent, other}, 3},
		"offsets, refreshed field": {func(*consumer.Options) {}, []string{sent, refreshed}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, b *bench) {
				var mu sync.Mutex
				runs := 0
				e := effect.Idempotent(func(context.Context, effect.Input) (effect.Receipt, error) {
					mu.Lock()
					defer mu.Unlock()
					runs++
					return effect.Receipt{}, nil
				}, forever())
				for _, payload := range c.payloads {
					if _, err := b.broker.Produce(driver.Record{Topic: topic, Value: []byte(payload)}); err != nil {
						t.Fatal(err)
					}
				}
				opts := b.options()
				c.change(opts)
				_, stop := b.start(b.broker.Source(group, []string{topic}, nil), e, opts)
				b.wait(5 * time.Second)
				stop()
				if runs != c.runs || b.told.count(consumer.DecisionDuplicate) != len(c.payloads)-c.runs {
					t.Errorf("%d runs, %d duplicates of %d, want %d runs", runs, b.told.count(consumer.DecisionDuplicate), len(c.payloads), c.runs)
				}
			})
		})
	}
}

// BL-118, the other limit: with an id of its own and a refreshed field the
// record is another intent under one key, and a dead letter says so.
func TestARefreshedFieldUnderOneIDIsAConflict(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		l := &ledger{}
		first, second := order("a"), order("a")
		second.Value = []byte("a, sent again")
		if _, err := b.broker.Produce(first, second); err != nil {
			t.Fatal(err)
		}
		_, stop := b.start(b.broker.Source(group, []string{topic}, nil), effect.Idempotent(l.book, forever()), b.options())
		b.wait(5 * time.Second)
		stop()
		if one, more := l.once(); one != 1 || more != 0 || b.told.count(consumer.DecisionConflict) != 1 || len(b.deadLetters()) != 1 {
			t.Errorf("%d booked once, %d more often, %d conflicts, %d dead letters", one, more, b.told.count(consumer.DecisionConflict), len(b.deadLetters()))
		}
	})
}

// BL-098: a record's trace goes with all its attempts and into its dead letter,
// once. One that is malformed is not handed to the effect and not multiplied.
func TestATraceIsNeitherBrokenNorDoubled(t *testing.T) {
	const good, bad = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7-01"
	for _, trace := range []string{good, bad} {
		bubble(t, 1, func(t *testing.T, b *bench) {
			r := order("a")
			r.Headers = append(r.Headers, driver.Header{Key: "traceparent", Value: []byte(trace)})
			if _, err := b.broker.Produce(r); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var seen []string
			e := effect.Idempotent(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, in.TraceParent)
				return effect.Receipt{}, effect.Temporary(errRefused)
			}, forever())
			_, stop := b.start(b.broker.Source(group, []string{topic}, nil), e, b.options())
			b.wait(time.Minute)
			stop()
			want := map[string]string{good: good, bad: ""}[trace]
			if len(seen) != 4 {
				t.Errorf("%d attempts, want 4", len(seen))
			}
			for attempt, got := range seen {
				if got != want {
					t.Errorf("attempt %d: trace %q, want %q", attempt+1, got, want)
				}
			}
			dead := b.deadLetters()
			if len(dead) != 1 {
				t.Fatalf("%d dead letters", len(dead))
			}
			carried := 0
			for _, h := range dead[0].Headers {
				if h.Key == "traceparent" && string(h.Value) == trace {
					carried++
				}
			}
			if carried != 1 {
				t.Errorf("the dead letter carries the trace %d times: %v", carried, dead[0].Headers)
			}
		})
	}
}

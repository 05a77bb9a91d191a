package memsource_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
)

func TestEnsure(t *testing.T) {
	b := memsource.NewBroker(nil)
	for name, o := range map[string]memsource.TopicOptions{
		"orders": {Partitions: 3},
		"narrow": {Partitions: 2, AppendTime: true},
		"small":  {Partitions: 3, MaxBytes: 10},
		"short":  {Partitions: 3, Retention: time.Minute},
		"plain":  {Partitions: 3},
	} {
		if err := b.CreateTopic(name, &o); err != nil {
			t.Fatal(err)
		}
	}
	makes := b.Producer(nil)
	refuses := b.Producer(&memsource.ProducerOptions{RefuseCreate: true})
	for _, c := range []struct {
		name string
		p    driver.Producer
		spec driver.TopicSpec
		want string // part of the error
	}{
		{"made", makes, driver.TopicSpec{Topic: "new", Like: "orders", AppendTime: true, Retention: time.Hour}, ""},
		{"there", refuses, driver.TopicSpec{Topic: "new", Like: "orders", AppendTime: true, Retention: time.Hour}, ""},
		{"missing", refuses, driver.TopicSpec{Topic: "other", Like: "orders"}, "other does not exist"},
		{"missing source", makes, driver.TopicSpec{Topic: "other", Like: "nothing"}, "nothing, which does not exist"},
		{"itself", makes, driver.TopicSpec{Topic: "orders", Like: "orders"}, "a name of its own"},
		{"narrow", makes, driver.TopicSpec{Topic: "narrow", Like: "orders"}, "add partitions"},
		{"small", makes, driver.TopicSpec{Topic: "small", Like: "orders"}, "MaxBytes"},
		{"short", makes, driver.TopicSpec{Topic: "short", Like: "orders", Retention: time.Hour}, "Retention"},
		{"plain", makes, driver.TopicSpec{Topic: "plain", Like: "orders", AppendTime: true}, "AppendTime"},
	} {
		err := c.p.Ensure(background, []driver.TopicSpec{c.spec})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if n := b.Partitions("new"); n != 3 {
		t.Errorf("the made topic has %d partitions, want 3", n)
	}
	if n := b.Partitions("other"); n != 0 {
		t.Error("a refused topic was made")
	}
}

func TestProduceFaults(t *testing.T) {
	b := broker(t, "a", 1)
	refused, unknown := errors.New("refused"), errors.New("unknown")
	p := b.Producer(&memsource.ProducerOptions{OnProduce: func(_ context.Context, r driver.Record) memsource.Fault {
		switch string(r.Value) {
		case "refuse":
			return memsource.Fault{Err: refused}
		case "lose the answer":
			return memsource.Fault{Err: unknown, Applied: true}
		}
		return memsource.Fault{}
	}})
	values := []string{"fine", "refuse", "lose the answer", strings.Repeat("x", 1<<20+1)}
	records := make([]driver.Record, len(values))
	for i, v := range values {
		records[i] = driver.Record{Topic: "a", Value: []byte(v)}
	}
	errs := p.Produce(background, records)
	for i, want := range []error{nil, refused, unknown, driver.ErrTooLarge} {
		if !errors.Is(errs[i], want) {
			t.Errorf("%.20s: %v, want %v", values[i], errs[i], want)
		}
	}
	if n := b.HighWatermark(tp("a", 0)); n != 2 {
		t.Errorf("%d records in the topic, want the fine one and the one whose answer was lost", n)
	}
	if err := p.Close(background); err != nil {
		t.Fatal(err)
	}
	if errs := p.Produce(background, records[:1]); !errors.Is(errs[0], driver.ErrClosed) {
		t.Errorf("produce after close: %v", errs[0])
	}
}

func TestCommitFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, "a", 3)
		boom := errors.New("boom")
		one := start(t, b, &memsource.SourceOptions{OnCommit: func(_ context.Context, o driver.Offset) memsource.Fault {
			return memsource.Fault{Err: map[int32]error{1: boom, 2: boom}[o.Partition], Applied: o.Partition == 2}
		}}, "a")
		one.said()
		var offsets []driver.Offset
		for p := range int32(3) {
			fill(t, b, tp("a", p), 1)
			offsets = append(offsets, driver.Offset{TopicPartition: tp("a", p), Offset: 1})
		}
		errs := one.Commit(background, offsets)
		for p, want := range []error{nil, boom, boom} {
			if !errors.Is(errs[p], want) {
				t.Errorf("partition %d: %v, want %v", p, errs[p], want)
			}
		}
		for p, want := range []int64{1, 0, 1} {
			if o, _ := b.Committed("g", tp("a", int32(p))); o.Offset != want {
				t.Errorf("partition %d stands at %d, want %d", p, o.Offset, want)
			}
		}
	})
}

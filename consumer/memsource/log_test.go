package memsource_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
)

func TestMarkersMoveTheNextFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, "a", 1)
		one := start(t, b, nil, "a")
		fill(t, b, tp("a", 0), 1)
		if err := b.Skip(tp("a", 0), 2); err != nil {
			t.Fatal(err)
		}
		batches, err := one.Poll(background, 10)
		if err != nil || len(batches) != 1 || len(batches[0].Records) != 1 || batches[0].NextFetch != 3 {
			t.Fatalf("poll: %+v, %v; want one record and next fetch 3", batches, err)
		}
		if err := b.Skip(tp("a", 0), 1); err != nil {
			t.Fatal(err)
		}
		batches, err = one.Poll(background, 10)
		if err != nil || len(batches) != 1 || len(batches[0].Records) != 0 || batches[0].NextFetch != 4 {
			t.Fatalf("poll after a lone marker: %+v, %v; want no record and next fetch 4", batches, err)
		}
	})
}

func TestOpenTransactionHoldsBack(t *testing.T) {
	for _, commit := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := broker(t, "a", 1)
			one := start(t, b, nil, "a")
			fill(t, b, tp("a", 0), 1)
			if err := b.Open(tp("a", 0)); err != nil {
				t.Fatal(err)
			}
			fill(t, b, tp("a", 0), 2)
			batches, err := one.Poll(background, 10)
			if err != nil || len(batches[0].Records) != 1 || batches[0].HighWatermark != 3 || batches[0].LastStable != 1 {
				t.Fatalf("poll: %+v, %v; want one record, 3 and 1", batches, err)
			}
			if err := b.End(tp("a", 0), commit); err != nil {
				t.Fatal(err)
			}
			got, _ := one.values(t)
			want := []string{"1", "2"}
			if !commit {
				want = nil
			}
			expect(t, "after the end", got, want...)
			fill(t, b, tp("a", 0), 1)
			got, _ = one.values(t)
			expect(t, "after the marker", got, "4")
		})
	}
}

func TestTrimmedPosition(t *testing.T) {
	for reset, want := range map[memsource.Position][]string{
		memsource.Default:  nil,
		memsource.Earliest: {"3", "4"},
		memsource.Latest:   nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := broker(t, "a", 1)
			one := start(t, b, &memsource.SourceOptions{OnReset: reset}, "a")
			one.said()
			fill(t, b, tp("a", 0), 5)
			if err := b.Trim(tp("a", 0), 3); err != nil {
				t.Fatal(err)
			}
			got, errs := one.values(t)
			expect(t, "values", got, want...)
			var e *memsource.ResetError
			if len(errs) != 1 || !errors.As(errs[0], &e) || e.Position != 0 || e.Start != 3 {
				t.Fatalf("errors: %v, want one ResetError from 0 in [3, 5]", errs)
			}
			o, _ := b.Committed("g", tp("a", 0))
			if e.To < 0 {
				expect(t, "calls", one.said())
				if o.Offset != 0 {
					t.Errorf("committed %d without a reset", o.Offset)
				}
				return
			}
			expect(t, "calls", one.said(), "lost a/0", "assigned a/0")
			if o.Offset != e.To {
				t.Errorf("committed %d after a reset to %d", o.Offset, e.To)
			}
		})
	}
}

func TestTruncationIsNoticedByEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, "a", 1)
		one := start(t, b, &memsource.SourceOptions{OnReset: memsource.Latest}, "a")
		fill(t, b, tp("a", 0), 3)
		one.values(t)
		if err := b.Truncate(tp("a", 0), 1); err != nil {
			t.Fatal(err)
		}
		fill(t, b, tp("a", 0), 4)
		got, errs := one.values(t)
		expect(t, "values", got, "1", "2", "3", "4")
		if len(errs) != 1 {
			t.Errorf("errors %v, want the truncation", errs)
		}
	})
}

func TestProducedRecordIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memsource.NewBroker(&memsource.BrokerOptions{AutoCreate: 2})
		value := []byte("v")
		r := driver.Record{Topic: "a", Key: []byte{}, Value: value, Headers: []driver.Header{{Key: "h"}, {Key: "h", Value: []byte{}}}}
		written, err := b.Produce(r, r)
		if err != nil || written[0].Partition != written[1].Partition {
			t.Fatalf("an empty key is a key: %+v, %v", written, err)
		}
		value[0] = 'x'
		got := b.Records("a")[0]
		if string(got.Value) != "v" || got.Key == nil || got.Headers[0].Value != nil || got.Headers[1].Value == nil {
			t.Errorf("kept %+v", got)
		}
		r.Key = nil
		written, err = b.Produce(r, r)
		if err != nil || written[0].Partition == written[1].Partition {
			t.Errorf("records without key take turns: %+v, %v", written, err)
		}
	})
}

func TestPollHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		b := broker(t, "a", 1)
		one := start(t, b, &memsource.SourceOptions{OnPoll: func(context.Context) error { return boom }}, "a")
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		if _, err := one.Poll(ctx, 1); !errors.Is(err, boom) {
			t.Errorf("poll: %v", err)
		}
	})
}

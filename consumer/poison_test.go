package consumer_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// One record of every kind of bad input between good ones: what becomes of it,
// and that nothing else stops.
func TestBadInput(t *testing.T) {
	id := func(s string) driver.Header { return driver.Header{Key: "idempotency-key", Value: []byte(s)} }
	reject := func(o *consumer.Options) { o.MissingID = consumer.MissingReject }
	for _, c := range []struct {
		name   string
		record driver.Record
		change func(*consumer.Options)
		reason string // of the dead letter; "" runs
	}{
		{"no id", driver.Record{Value: []byte("x")}, nil, ""},
		{"no id, hash", driver.Record{Value: []byte("x")}, func(o *consumer.Options) { o.MissingID = consumer.MissingPayloadHash }, ""},
		{"no id, reject", driver.Record{Value: []byte("x")}, reject, "missing dedupe id"},
		{"empty id, reject", driver.Record{Value: []byte("x"), Headers: []driver.Header{id("")}}, reject, "missing dedupe id"},
		{"blank id, reject", driver.Record{Value: []byte("x"), Headers: []driver.Header{id(" \t ")}}, reject, "missing dedupe id"},
		{"nil id, reject", driver.Record{Value: []byte("x"), Headers: []driver.Header{{Key: "idempotency-key"}}}, reject, "missing dedupe id"},
		{"empty id", driver.Record{Value: []byte("x"), Headers: []driver.Header{id("")}}, nil, ""},
		{"two ids", driver.Record{Value: []byte("x"), Headers: []driver.Header{id("a"), {Key: "Idempotency-KEY", Value: []byte("b")}}}, nil, "dedupe id"},
		{"one id twice", driver.Record{Value: []byte("x"), Headers: []driver.Header{id("a"), id("a")}}, nil, ""},
		{"two event ids", driver.Record{Value: []byte("x"), Headers: []driver.Header{
			{Key: "ce_source", Value: []byte("shop")}, {Key: "ce_id", Value: []byte("1")}, {Key: "CE_ID", Value: []byte("2")},
		}}, nil, "dedupe id"},
		{"bytes that do not decode", driver.Record{Value: []byte{0xff, 0x00, 0xfe}, Headers: []driver.Header{id("a")}}, nil, "undecodable"},
		{"nil key", driver.Record{Value: []byte("x"), Headers: []driver.Header{id("a")}}, nil, ""},
		{"empty key", driver.Record{Key: []byte{}, Value: []byte("x"), Headers: []driver.Header{id("a")}}, nil, ""},
		{"nil value", driver.Record{Key: []byte("k"), Headers: []driver.Header{id("a")}}, nil, ""},
		{"nil value, no id, hash", driver.Record{Key: []byte("k")}, func(o *consumer.Options) { o.MissingID = consumer.MissingPayloadHash }, ""},
		{"900 kB", driver.Record{Key: []byte("k"), Value: big, Headers: []driver.Header{id("a")}}, nil, ""},
		{"id of strange bytes", driver.Record{Value: []byte("x"), Headers: []driver.Header{id("\x00\xff\r\n%")}}, nil, ""},
		{"long id", driver.Record{Value: []byte("x"), Headers: []driver.Header{id(strings.Repeat("i", 100_000))}}, nil, ""},
		{"other header twice", driver.Record{Value: []byte("x"), Headers: []driver.Header{id("a"), {Key: "h", Value: []byte("1")}, {Key: "h", Value: []byte("2")}}}, nil, ""},
		{"extractor fails", driver.Record{Value: []byte("bad")}, func(o *consumer.Options) { o.DedupeID = extract }, "dedupe id"},
		{"extractor panics", driver.Record{Value: []byte("panic")}, func(o *consumer.Options) { o.DedupeID = extract }, "dedupe id"},
		{"looks like a copy", driver.Record{Value: []byte("x"), Headers: []driver.Header{id("a"), {Key: "oncefence-attempt", Value: []byte("9")}}}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, b *bench) {
				b.produce("before", "", "before")
				c.record.Topic = topic
				b.produceRecord(c.record)
				b.produce("after", "", "after")
				opts := b.options()
				if c.change != nil {
					c.change(opts)
				}
				s := &script{b: b, answers: []error{nil}}
				e := effect.Idempotent(func(ctx contextT, in effect.Input) (effect.Receipt, error) {
					if bytes.Contains(in.Payload, []byte{0xff}) {
						return effect.Receipt{}, effect.Undecodable(errors.New("not JSON"))
					}
					return s.run(ctx, in)
				}, forever())
				b.runFor(5*time.Second, e, opts)
				if b.committed(0) != 3 || b.ledger.count("before") != 1 || b.ledger.count("after") != 1 {
					t.Errorf("committed %d, booked %v", b.committed(0), b.ledger.order)
				}
				dead := b.deadLetters()
				if c.reason == "" {
					if len(dead) != 0 || s.count() != 3 {
						t.Errorf("%d dead letters, %d runs", len(dead), s.count())
					}
					for _, in := range s.runs {
						if in.Origin.Offset == 1 && (!bytes.Equal(in.Payload, c.record.Value) || (in.Payload == nil) != (c.record.Value == nil) || (in.MessageKey == nil) != (c.record.Key == nil) || in.Attempt != 1) {
							t.Errorf("the effect got key %q, %d bytes, attempt %d", in.MessageKey, len(in.Payload), in.Attempt)
						}
					}
					return
				}
				if len(dead) != 1 {
					t.Fatalf("%d dead letters", len(dead))
				}
				d := dead[0]
				if header(d, "oncefence-reason") != c.reason || !bytes.Equal(d.Value, c.record.Value) || !strings.HasPrefix(header(d, "oncefence-origin"), "orders:0:1:") {
					t.Errorf("dead letter %v of %d bytes", d.Headers, len(d.Value))
				}
				if (d.Key == nil) != (c.record.Key == nil) {
					t.Errorf("key %v became %v", c.record.Key, d.Key)
				}
			})
		})
	}
}

func extract(r consumer.Record) (string, error) {
	switch string(r.Value) {
	case "bad":
		return "", errors.New("no order number")
	case "panic":
		panic("index out of range")
	}
	return string(r.Value), nil
}

func TestPoisonTouchesNoRecord(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produceRecord(driver.Record{Topic: topic, Value: []byte("x"), Headers: []driver.Header{
			{Key: "idempotency-key", Value: []byte("a")}, {Key: "idempotency-key", Value: []byte("b")},
		}})
		b.runFor(3*time.Second, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		n := 0
		if err := b.space().Scan(t.Context(), fencedriver.Filter{}, func(fencedriver.Digest, fencedriver.Record) bool { n++; return true }); err != nil {
			t.Fatal(err)
		}
		if n != 0 || b.log.count("poison") != 1 || b.committed(0) != 1 {
			t.Errorf("%d records in the fence, decisions %v, committed %d", n, b.log, b.committed(0))
		}
		if c := header(b.deadLetters()[0], "oncefence-class"); c != "" {
			t.Errorf("class %q of a record whose effect never ran", c)
		}
	})
}

func TestAConflictIsItsOwnDeadLetter(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "first")
		b.produce("a", "k", "second")
		b.produce("a", "k", "first")
		b.runFor(3*time.Second, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		dead := b.deadLetters()
		if len(dead) != 1 || string(dead[0].Value) != "second" || b.ledger.total() != 1 || b.log.count("duplicate") != 1 || b.committed(0) != 3 {
			t.Fatalf("%d dead letters, booked %v, decisions %v, committed %d", len(dead), b.ledger.order, b.log, b.committed(0))
		}
		d := dead[0]
		if header(d, "oncefence-fingerprint") != fence.FormatFingerprint(fence.FingerprintOf([]byte("second"))) ||
			header(d, "oncefence-other-fingerprint") != fence.FormatFingerprint(fence.FingerprintOf([]byte("first"))) ||
			header(d, "oncefence-reason") != "conflict" {
			t.Errorf("headers %v", d.Headers)
		}
		if r := b.record("a"); r.State != fencedriver.Done || r.Attempt != 1 {
			t.Errorf("the conflict touched the record: %s at attempt %d", r.State, r.Attempt)
		}
	})
}

func TestPoisonThatCannotBeProducedHoldsUpOnlyItsPartition(t *testing.T) {
	bubble(t, 2, func(t *testing.T, b *bench) {
		for p := range int32(2) {
			for i := range 20 {
				h := []driver.Header{{Key: "idempotency-key", Value: fmt.Append(nil, "id-", p, i)}}
				if p == 0 && i == 5 {
					h = append(h, driver.Header{Key: "idempotency-key", Value: []byte("other")})
				}
				if _, err := b.broker.ProduceTo(driver.TopicPartition{Topic: topic, Partition: p}, driver.Record{Value: []byte("x"), Headers: h}); err != nil {
					t.Fatal(err)
				}
			}
		}
		var down atomic.Bool
		down.Store(true)
		opts := b.options()
		opts.Producer = b.failingProducer(func(driver.Record) bool { return down.Load() })
		c, stop := b.start(effect.Idempotent(b.ledger.bookEffect, forever()), opts)
		b.wait(2 * time.Minute)
		if b.committed(0) != 5 || b.committed(1) != 20 || b.ledger.total() != 39 {
			t.Errorf("committed %d and %d, %d booked", b.committed(0), b.committed(1), b.ledger.total())
		}
		if err := c.Healthy(); err == nil || !strings.Contains(err.Error(), "orders partition 0 stands at offset 5 since") {
			t.Errorf("Healthy: %v", err)
		}
		down.Store(false)
		b.wait(5 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if b.committed(0) != 20 || len(b.deadLetters()) != 1 {
			t.Errorf("committed %d, %d dead letters", b.committed(0), len(b.deadLetters()))
		}
	})
}

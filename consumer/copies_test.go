package consumer_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/requeue"
)

const (
	retry1s = topic + "." + group + ".retry.1s"
	retry5s = topic + "." + group + ".retry.5s"
)

// copyOf is a copy of an original with this dedupe id, as a member of the group
// writes it.
func copyOf(id, value string, attempt, step uint32) requeue.Copy {
	return requeue.Copy{
		KeyText: idKey(id).Text(), Namespace: "%-:" + group, Attempt: attempt, Step: step,
		Origin:      requeue.Origin{Topic: topic, LeaderEpoch: -1, Timestamp: time.Now()},
		Fingerprint: fence.FormatFingerprint(fence.FingerprintOf([]byte(value))),
	}
}

// send writes a copy to a retry topic of the group.
func (b *bench) send(to string, c requeue.Copy, value string) {
	b.t.Helper()
	out, err := requeue.Encode(c, driver.Record{Topic: to, Value: []byte(value)}, to, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	b.produceRecord(out)
}

// ready makes the group's own topics.
func (b *bench) ready() {
	b.t.Helper()
	b.runFor(time.Second, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
}

func (b *bench) retryCommitted(name string) int64 {
	o, _ := b.broker.Committed(group, driver.TopicPartition{Topic: name})
	return o.Offset
}

func TestCopiesThatCannotBeTrustedArePoison(t *testing.T) {
	foreign := copyOf("a", "order a", 2, 1)
	foreign.Namespace = "%-:other"
	damaged := copyOf("a", "order b", 2, 1)
	badKey := copyOf("a", "order a", 2, 1)
	badKey.KeyText = "not%zzcanonical"
	pointer := copyOf("a", "order a", 2, 1)
	pointer.Pointer, pointer.Omitted = true, "value"
	for name, c := range map[string]struct {
		copy             requeue.Copy
		reason, decision string
	}{
		"foreign": {foreign, "copy of another namespace", "foreign_copy"},
		"damaged": {damaged, "damaged copy", "poison"},
		"bad key": {badKey, "unreadable copy", "poison"},
		"pointer": {pointer, "pointer", "poison"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, b *bench) {
				b.ready()
				b.send(retry1s, c.copy, "order a")
				b.runFor(5*time.Second, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
				dead := b.deadLetters()
				if len(dead) != 1 || header(dead[0], "oncefence-reason") != c.reason || b.log.count(c.decision) != 1 {
					t.Fatalf("dead letters %v, decisions %v", dead, b.log)
				}
				if b.ledger.total() != 0 || b.retryCommitted(retry1s) != 1 || b.record("a").State != fencedriver.Absent {
					t.Errorf("%d booked, committed %d, record %s", b.ledger.total(), b.retryCommitted(retry1s), b.record("a").State)
				}
			})
		})
	}
}

func TestARecordWithoutOurHeadersInARetryTopicIsPoison(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.ready()
		b.produceRecord(driver.Record{Topic: retry1s, Key: []byte("k"), Value: []byte("stray")})
		b.runFor(5*time.Second, effect.Idempotent(b.ledger.bookEffect, forever()), b.options())
		dead := b.deadLetters()
		if len(dead) != 1 || header(dead[0], "oncefence-reason") != "unreadable copy" || string(dead[0].Value) != "stray" || b.retryCommitted(retry1s) != 1 {
			t.Errorf("dead letters %v, committed %d", dead, b.retryCommitted(retry1s))
		}
	})
}

func TestACopyBelowTheRecordIsSuperseded(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{effect.Temporary(errPlain), effect.Temporary(errPlain), nil}}
		_, stop := b.start(effect.Idempotent(s.run, forever()), b.options())
		b.wait(3 * time.Second) // the copy of attempt 3 waits 5 s
		b.send(retry1s, copyOf("a", "order a", 2, 1), "order a")
		b.produce("a", "k", "order a") // and a duplicate of the original
		b.wait(2 * time.Second)
		if b.log.count("superseded") != 2 || s.count() != 2 {
			t.Errorf("decisions %v, %d runs", b.log, s.count())
		}
		b.wait(5 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if s.count() != 3 || b.record("a").State != fencedriver.Done {
			t.Errorf("%d runs, record %s", s.count(), b.record("a").State)
		}
	})
}

func TestADoubledCopyRunsOnce(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{effect.Temporary(errPlain), nil}}
		_, stop := b.start(effect.Idempotent(s.run, forever()), b.options())
		b.wait(500 * time.Millisecond)
		b.send(retry1s, copyOf("a", "order a", 2, 1), "order a")
		b.wait(5 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if s.count() != 2 || b.log.count("duplicate") != 1 || b.retryCommitted(retry1s) != 2 {
			t.Errorf("%d runs, decisions %v", s.count(), b.log)
		}
	})
}

// dead makes a key dead: without doubt by a permanent error, in doubt by a plain
// one under a schedule without retries.
func (b *bench) dead(e func(effect.Func) effect.Effect, err error) {
	b.t.Helper()
	b.produce("a", "k", "order a")
	s := &script{b: b, answers: []error{err}}
	opts := b.options()
	opts.Schedule.Delays = []time.Duration{time.Second, 5 * time.Second}
	if err == errPlain { //nolint:errorlint // the value itself
		opts.Schedule.Delays = []time.Duration{time.Second}
	}
	b.runFor(5*time.Second, e(s.run), opts)
	if r := b.record("a"); r.State != fencedriver.Dead {
		b.t.Fatalf("record %s, decisions %v", r.State, b.log)
	}
}

func idempotent(f effect.Func) effect.Effect { return effect.Idempotent(f, forever()) }
func atMostOnce(f effect.Func) effect.Effect { return effect.AtMostOnce(f, nil) }

func TestAReplayOpensADeadKey(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.dead(idempotent, effect.Permanent(errPlain))
		b.produce("a", "k", "order a") // the original again: still dead
		b.runFor(3*time.Second, idempotent(b.ledger.bookEffect), b.options())
		if b.log.count("dead") != 1 || b.ledger.total() != 0 {
			t.Fatalf("decisions %v, %d booked", b.log, b.ledger.total())
		}
		b.send(retry1s, copyOf("a", "order a", b.record("a").Attempt+1, 0), "order a")
		s := &script{b: b, answers: []error{nil}}
		b.runFor(5*time.Second, idempotent(s.run), b.options())
		if s.count() != 1 || s.runs[0].Attempt != 2 || s.runs[0].Step != 0 || b.record("a").State != fencedriver.Done || b.log.count("in_doubt") != 0 {
			t.Errorf("runs %+v, record %s, decisions %v", s.runs, b.record("a").State, b.log)
		}
	})
}

func TestAReplayOfADeadKeyInDoubtIsInDoubt(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.dead(idempotent, errPlain)
		n := b.record("a").Attempt
		before := b.log.count("in_doubt")
		b.send(retry1s, copyOf("a", "order a", n+1, 0), "order a")
		s := &script{b: b, answers: []error{nil}}
		b.runFor(5*time.Second, idempotent(s.run), b.options())
		if s.count() != 1 || b.record("a").State != fencedriver.Done || b.log.count("in_doubt") != before+1 {
			t.Errorf("%d runs, record %s, decisions %v", s.count(), b.record("a").State, b.log)
		}
	})
}

func TestAReplayCannotClearTheDoubtOfAtMostOnce(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.dead(atMostOnce, errPlain)
		for _, n := range []uint32{2, 3, 5, 4} {
			b.send(retry1s, copyOf("a", "order a", n, 0), "order a")
		}
		s := &script{b: b, answers: []error{nil}}
		b.runFor(5*time.Second, atMostOnce(s.run), b.options())
		r := b.record("a")
		if s.count() != 0 || r.State != fencedriver.Dead || !r.InDoubt || r.Attempt != 5 {
			t.Errorf("%d runs, record %s, in doubt %v, attempt %d", s.count(), r.State, r.InDoubt, r.Attempt)
		}
		if b.retryCommitted(retry1s) != 4 || b.log.count("parked") < 3 {
			t.Errorf("committed %d, decisions %v", b.retryCommitted(retry1s), b.log)
		}
		// Resolved as not applied, the next replay runs.
		sp := b.space()
		a := sp.Apply(t.Context(), []fencedriver.Transition{{Op: fencedriver.Resolve, Key: idKey("a").Digest(), Token: r.Token, Retention: time.Hour, Reason: "by hand"}})
		if a[0].Err != nil || a[0].Outcome != fencedriver.OK {
			t.Fatal(a[0])
		}
		b.send(retry1s, copyOf("a", "order a", 6, 0), "order a")
		b.runFor(5*time.Second, atMostOnce(s.run), b.options())
		if s.count() != 1 || b.record("a").State != fencedriver.Done {
			t.Errorf("%d runs, record %s", s.count(), b.record("a").State)
		}
	})
}

func TestADelayLongerThanItsTopicHopsOn(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		b.produce("a", "k", "order a")
		s := &script{b: b, answers: []error{effect.TemporaryAfter(errPlain, 2*time.Minute), nil}}
		opts := b.options()
		opts.Schedule = exact(time.Second, 5*time.Second, 30*time.Second)
		b.runFor(4*time.Minute, idempotent(s.run), opts)
		if s.count() != 2 || s.at[1].Sub(s.at[0]) < 2*time.Minute || s.at[1].Sub(s.at[0]) > 2*time.Minute+10*time.Second {
			t.Fatalf("%d runs at %v", s.count(), s.at)
		}
		if s.runs[1].Attempt != 2 || b.log.count("moved") < 3 || b.record("a").State != fencedriver.Done {
			t.Errorf("attempt %d, decisions %v, record %s", s.runs[1].Attempt, b.log, b.record("a").State)
		}
	})
}

func TestACopyCarriesWhatTheRecordHad(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		original := driver.Record{Topic: topic, Value: nil, Timestamp: time.Now().Add(-time.Hour).Truncate(time.Millisecond), Headers: []driver.Header{
			{Key: "idempotency-key", Value: []byte("a")},
			{Key: "x", Value: []byte{0, 1}},
			{Key: "x", Value: nil},
			{Key: "oncefence-attempt", Value: []byte("7")},
			{Key: "traceparent", Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
		}}
		b.produceRecord(original)
		s := &script{b: b, answers: []error{effect.Temporary(errPlain), effect.Permanent(errPlain)}}
		b.runFor(5*time.Second, idempotent(s.run), b.options())
		if s.count() != 2 {
			t.Fatalf("%d runs", s.count())
		}
		for _, in := range s.runs {
			if in.Payload != nil || in.MessageKey != nil || len(in.Headers) != 5 || in.Headers[3].Key != "oncefence-attempt" || in.Headers[2].Value != nil || !bytes.Equal(in.Headers[1].Value, []byte{0, 1}) {
				t.Errorf("attempt %d got %+v", in.Attempt, in)
			}
			if in.TraceParent == "" || !in.Origin.Timestamp.Equal(original.Timestamp) || in.Origin.Topic != topic || in.Origin.Offset != 0 {
				t.Errorf("attempt %d: trace %q, origin %+v", in.Attempt, in.TraceParent, in.Origin)
			}
		}
		d := b.deadLetters()[0]
		if d.Value != nil || d.Key != nil || header(d, "user-oncefence-attempt") != "7" || header(d, "oncefence-attempt") != "2" {
			t.Errorf("dead letter %v", d.Headers)
		}
	})
}

func TestADeadLetterThatIsTooLargeBecomesAPointer(t *testing.T) {
	for limit, want := range map[int]int64{1 << 16: 1, -1: 0} {
		bubble(t, 1, func(t *testing.T, b *bench) {
			b.produce("a", "k", string(big))
			opts := b.options()
			opts.Producer = b.tightProducer(limit)
			s := &script{b: b, answers: []error{effect.Permanent(errPlain)}}
			_, stop := b.start(idempotent(s.run), opts)
			b.wait(time.Minute)
			if b.committed(0) != want {
				t.Errorf("a topic that takes %d bytes of payload: committed %d, want %d", limit, b.committed(0), want)
			}
			if want == 1 {
				d := b.deadLetters()
				if len(d) != 1 || d[0].Value != nil || header(d[0], "oncefence-pointer") != "value" || header(d[0], "oncefence-fingerprint") == "" {
					t.Errorf("dead letters %v", d)
				}
			}
			if s.count() != 1 {
				t.Errorf("%d runs", s.count())
			}
			_ = stop()
		})
	}
}

func TestARetryThatIsTooLargeForItsTopicWaitsInPlace(t *testing.T) {
	for _, kind := range []string{"idempotent", "at-least-once"} {
		bubble(t, 1, func(t *testing.T, b *bench) {
			b.produce("a", "k", string(big))
			opts := b.options()
			opts.Producer = b.tightProducer(1 << 16)
			s := &script{b: b, answers: []error{effect.Temporary(errPlain), effect.Temporary(errPlain), nil}}
			e := idempotent(s.run)
			if kind == "at-least-once" {
				e = effect.AtLeastOnce(s.run, nil)
			}
			b.runFor(time.Minute, e, opts)
			if s.count() != 3 || s.runs[2].Attempt != 3 || s.runs[2].Step != 2 || s.at[2].Sub(s.at[1]) < 4*time.Second || b.committed(0) != 1 {
				t.Errorf("%s: %d runs at %v, committed %d", kind, s.count(), s.at, b.committed(0))
			}
		})
	}
}

func TestACopyWaitsOutItsDelayNeverEarly(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		for i := range 20 {
			b.produce(string(rune('a'+i)), "", "order")
			b.wait(10 * time.Millisecond)
		}
		first := map[string]time.Time{}
		e := effect.Idempotent(func(_ context.Context, in effect.Input) (effect.Receipt, error) {
			if in.Attempt == 1 {
				first[in.Key] = time.Now()
				return effect.Receipt{}, effect.Temporary(errPlain)
			}
			if d := time.Since(first[in.Key]); d < time.Second || d > 1500*time.Millisecond {
				t.Errorf("%s came back after %v", in.Key, d)
			}
			return effect.Receipt{}, nil
		}, forever())
		opts := b.options()
		opts.Concurrency, opts.Schedule = 1, exact(time.Second)
		b.runFor(10*time.Second, e, opts)
		if len(first) != 20 || b.log.count("done") != 20 {
			t.Errorf("decisions %v", b.log)
		}
	})
}

package consumer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/requeue"
)

// A process dies with a claim on the first line of a key, and another line with
// the same key and payload takes it over: what is written about the key carries
// the first line's coordinates, or nobody would find it by them.
func TestCopiesCarryTheOriginOfTheFirstClaim(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *bench) {
		first := fencedriver.Origin{Source: "memory", Topic: topic, Partition: 0, Offset: 7, Timestamp: time.Now().UnixMilli()}
		s := b.space()
		r := &fence.Request{
			Key: fence.RecordKey(fence.ScopeID, topic, 0, fence.Nil, fence.Text("a")), Kind: fencedriver.KindIdempotent, Attempt: 1,
			Lease: time.Second, Fingerprint: fence.FingerprintOf([]byte("order a")), Origin: first,
		}
		claimed := s.Claim(t.Context(), []*fence.Request{r})[0]
		if claimed.Err != nil || claimed.Answer != fencedriver.New {
			t.Fatalf("claim: %v, %v", claimed.Answer, claimed.Err)
		}
		claimed.Hold.Drop()

		b.produce("a", "k", "order a")
		run := &script{b: b, answers: []error{effect.Temporary(errors.New("busy")), effect.Permanent(errors.New("no such customer"))}}
		opts := b.options()
		opts.Schedule = exact(2 * time.Second)
		b.runFor(10*time.Second, effect.Idempotent(run.run, forever()), opts)

		copies := b.broker.Records(topic + "." + group + ".retry.2s")
		dead := b.deadLetters()
		if len(copies) != 1 || len(dead) != 1 {
			t.Fatalf("%d copies, %d dead letters, decisions %v", len(copies), len(dead), b.log)
		}
		for _, text := range []string{header(copies[0], "oncefence-origin"), header(dead[0], "oncefence-origin")} {
			o, err := requeue.ParseOrigin(text)
			if err != nil || o.Topic != topic || o.Offset != 7 || o.Timestamp.UnixMilli() != first.Timestamp {
				t.Errorf("origin %s (%v), want offset 7 of %s", text, err, topic)
			}
		}
	})
}

package redisfence_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/test/servers"
)

// TestHistories holds the scripts to Decide: random batches go to the server
// and, at the clock that it answers, to a model; answers, stored bytes and
// Redis's own expiry must be the same.
func TestHistories(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	client := connect(t, servers.Redis(t).URL())
	h := &history{
		t: t, client: client, store: open(t, client, nil), ns: namespace(t),
		rand: rand.New(rand.NewPCG(seed, 1)), model: map[driver.Digest]*driver.Record{},
	}
	steps := 3000
	if testing.Short() {
		steps = 500
	}
	for range steps {
		if h.rand.IntN(2) == 0 {
			h.claim()
		} else {
			h.apply()
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d claims and %d transitions, by answer: %v", h.claims, h.transitions, h.count)
}

type history struct {
	t                   *testing.T
	client              *redis.Client
	store               driver.Store
	ns                  string
	rand                *rand.Rand
	model               map[driver.Digest]*driver.Record
	age                 [24]int
	now                 int64
	claims, transitions int
	count               map[string]int
}

// keys picks some of 24 keys, none twice. A key that is done gives way to a new
// one now and then.
func (h *history) keys() []driver.Digest {
	var out []driver.Digest
	for _, n := range h.rand.Perm(len(h.age))[:1+h.rand.IntN(6)] {
		key := func() driver.Digest {
			return driver.Digest{byte(n * 11), 1: byte(n), 2: byte(h.age[n] >> 8), 3: byte(h.age[n])}
		}
		if r := h.model[key()]; r != nil && r.State == driver.Done && h.rand.IntN(3) == 0 {
			h.age[n]++
		}
		out = append(out, key())
	}
	return out
}

func (h *history) nonce() driver.Nonce {
	return driver.Nonce{0: byte(h.rand.IntN(256)), 1: byte(h.rand.IntN(2))}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func (h *history) origin() driver.Origin {
	return driver.Origin{
		Source: pick(h.rand, "", "kafka"), Topic: pick(h.rand, "", "orders", "a\x00b"), Partition: int32(h.rand.IntN(3)) - 1,
		Offset: pick(h.rand, int64(0), 5, 300, 1<<40, -1), Timestamp: pick(h.rand, int64(0), -1, 1_790_000_000_000),
	}
}

func (h *history) fingerprint() driver.Fingerprint {
	return driver.Fingerprint{Scheme: uint8(pick(h.rand, 0, 1, 1, 1, 2)), Sum: [16]byte{5: byte(pick(h.rand, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2))}}
}

func (h *history) steps() []driver.Step {
	var out []driver.Step
	for i := range h.rand.IntN(3) {
		out = append(out, driver.Step{Name: fmt.Sprintf("step %d", i), Kind: driver.KindProbed, Receipt: pick(h.rand, nil, []byte("r\x00"))})
	}
	return out
}

func (h *history) kind() driver.Kind { return driver.Kind(1 + h.rand.IntN(4)) }

func (h *history) lease() time.Duration {
	return pick(h.rand, time.Microsecond, time.Millisecond, time.Hour)
}

func (h *history) retention() time.Duration {
	return pick(h.rand, 0, time.Microsecond, 2*time.Millisecond, time.Hour)
}

func (h *history) claim() {
	var batch []driver.Claim
	for _, key := range h.keys() {
		r := h.model[key]
		if r == nil {
			r = &driver.Record{}
		}
		nonce := h.nonce()
		if h.rand.IntN(10) == 0 {
			nonce = pick(h.rand, r.Nonce, r.Released)
		}
		batch = append(batch, driver.Claim{
			Key: key, Nonce: nonce, Kind: h.kind(), Attempt: uint32(1 + h.rand.IntN(4)), Step: uint32(h.rand.IntN(3)),
			Lease: h.lease(), Fingerprint: h.fingerprint(), Origin: h.origin(), InPlace: h.rand.IntN(2) == 0,
			NotAfter:      pick(h.rand, 0, 0, 0, 0, h.now+time.Hour.Microseconds(), h.now+time.Hour.Microseconds(), max(h.now-1, 0)),
			TakeoverUntil: pick(h.rand, 0, 1<<62, 1<<62, 1<<62, h.now+time.Hour.Microseconds()),
		})
	}
	for i, got := range h.store.Claim(h.t.Context(), h.ns, batch) {
		c := &batch[i]
		h.claims++
		found := h.model[c.Key]
		before := describe(found)
		next, want := c.Decide(found, got.Now, func(prev uint64) uint64 { return max(prev+1, uint64(got.Now)) })
		if want.Err != nil {
			h.tally("claim error")
			if !errors.Is(got.Err, want.Err) {
				h.t.Errorf("claim %+v on %s: error %v, want %v", c, before, got.Err, want.Err)
			}
			continue
		}
		h.tally("claim " + want.Answer.String())
		want.Record, got.Record = tidy(want.Record), tidy(got.Record)
		if !reflect.DeepEqual(got, want) {
			h.t.Errorf("claim %+v\n  on %s\n got %+v\nwant %+v", c, before, got, want)
		}
		h.moved(c.Key, next, got.Now, false)
	}
}

func (h *history) apply() {
	var batch []driver.Transition
	for _, key := range h.keys() {
		r := h.model[key]
		if r == nil {
			r = &driver.Record{}
		}
		op := driver.Op(1 + h.rand.IntN(10))
		if op == driver.Seal && h.rand.IntN(2) == 0 { // the end of most histories
			op = pick(h.rand, driver.Begin, driver.Release)
		}
		t := driver.Transition{
			Op: op, Key: key, Token: pick(h.rand, r.Token, r.Token, r.Token, r.Token, r.Token, r.ReleasedToken, r.Token+1, 0),
			Nonce: pick(h.rand, r.Nonce, r.Nonce, r.Released, h.nonce()), Attempt: pick(h.rand, r.Attempt, r.Attempt, r.Attempt+1), Step: uint32(h.rand.IntN(3)),
			NextAttempt: r.Attempt + uint32(h.rand.IntN(3)), NextStep: 2, Takeovers: r.Takeovers, Due: pick(h.rand, 0, time.Millisecond, time.Hour),
			Lease: pick(h.rand, 0, h.lease()), Retention: h.retention(), InDoubt: h.rand.IntN(3) == 0, Applied: h.rand.IntN(2) == 0,
			Kind: h.kind(), Fingerprint: h.fingerprint(), Origin: h.origin(), FirstSeen: r.FirstSeen, AttemptEnd: r.AttemptEnd,
			EffectID: pick(h.rand, "id-1", "id-2"), Receipt: pick(h.rand, nil, []byte("receipt\x00")), Reason: pick(h.rand, "", "because", string(bytes.Repeat([]byte("long "), 60))), Steps: h.steps(),
		}
		batch = append(batch, t)
	}
	for i, got := range h.store.Apply(h.t.Context(), h.ns, batch) {
		t := &batch[i]
		h.transitions++
		before := describe(h.model[t.Key])
		next, want := t.Decide(h.model[t.Key], got.Now)
		h.tally(t.Op.String() + " " + want.Outcome.String())
		want.Record, got.Record = tidy(want.Record), tidy(got.Record)
		if !reflect.DeepEqual(got, want) {
			h.t.Errorf("%s %+v\n  on %s\n got %+v\nwant %+v", t.Op, t, before, got, want)
		}
		h.moved(t.Key, next, got.Now, t.Op == driver.Release)
	}
}

func (h *history) tally(what string) {
	if h.count == nil {
		h.count = map[string]int{}
	}
	h.count[what]++
}

// moved takes next into the model and compares the bytes that the server has.
func (h *history) moved(key driver.Digest, next *driver.Record, now int64, released bool) {
	h.now = now
	if next != nil {
		copied := *next
		h.model[key] = &copied
	}
	model := h.model[key]
	name := fmt.Sprintf("idemp:{%s:%d}:%s", h.ns, key[0]%16, hex.EncodeToString(key[:]))
	data, err := h.client.Get(h.t.Context(), name).Bytes()
	if errors.Is(err, redis.Nil) {
		if model != nil && !model.Expired(h.serverNow()) {
			h.t.Errorf("key %x: the server has nothing, the model %s", key[:2], describe(model))
		}
		return
	}
	if err != nil {
		h.t.Fatal(err)
	}
	if model == nil {
		h.t.Fatalf("key %x: the server has %q, the model nothing", key[:2], data)
	}
	if want := driver.AppendRecord(nil, model); !bytes.Equal(data, want) {
		h.t.Errorf("key %x:\n got %q\nwant %q", key[:2], data, want)
	}
	if next == nil {
		return
	}
	end, err := h.client.PExpireTime(h.t.Context(), name).Result()
	if err != nil {
		h.t.Fatal(err)
	}
	want := time.Duration(-1)
	if ends := model.Expire; ends != 0 && model.State != driver.Pending && (!model.InDoubt || model.State == driver.Done) {
		want = time.Duration((ends+999)/1000) * time.Millisecond
		if released {
			want = max(want, time.Duration((now+driver.TombstoneLife.Microseconds()+999)/1000)*time.Millisecond)
		}
	}
	if end > 0 || want > 0 {
		if end != want && end != -2 { // gone meanwhile
			h.t.Errorf("key %x: ends at %d, want %d (%s)", key[:2], end, want, describe(model))
		}
	}
}

func (h *history) serverNow() int64 {
	now, err := h.client.Time(context.Background()).Result()
	if err != nil {
		h.t.Fatal(err)
	}
	return now.UnixMicro()
}

func describe(r *driver.Record) string {
	if r == nil {
		return "nothing"
	}
	s := fmt.Sprintf("%+v", *r)
	if r.Prior != nil {
		s += fmt.Sprintf(" prior %+v", *r.Prior)
	}
	return s
}

// tidy makes records comparable: the packed form does not keep the difference
// between nil and empty.
func tidy(r driver.Record) driver.Record {
	packed, err := driver.ParseRecord(driver.AppendRecord(nil, &r))
	if err != nil {
		return r
	}
	return packed
}

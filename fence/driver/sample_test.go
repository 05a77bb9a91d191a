package driver_test

import (
	"bytes"
	"math"
	"reflect"

	"github.com/oncefence/oncefence/fence/driver"
)

// samples holds a record for each shape that the packed form has.
func samples() map[string]driver.Record {
	origin := driver.Origin{Source: "kafka", Topic: "orders", Partition: 3, Offset: 41, Timestamp: 1700000000123}
	fingerprint := driver.Fingerprint{Scheme: 1, Sum: [16]byte{0xaa, 0xbb, 0xcc}}
	requeued := driver.Record{
		State: driver.Requeued, Kind: driver.KindProbed, InDoubt: true, Token: 7, Attempt: 2, Step: 1, Takeovers: 1, Fingerprint: fingerprint,
		AttemptEnd: 1700000001000000, FirstSeen: 1700000000500000, Expire: 1702592000000000, Origin: origin, Reason: "503",
		Released: driver.Nonce{9}, ReleasedToken: 8, Steps: []driver.Step{{Name: "reserve", Kind: driver.KindProbed, Receipt: []byte{0, 1, 255}}, {Name: "book", Kind: driver.KindAtMostOnce}},
	}
	lost := requeued
	lost.State, lost.PriorLost, lost.Expire = driver.Pending, true, 0
	return map[string]driver.Record{
		"released": {Released: driver.Nonce{1, 2}, ReleasedToken: 5, Expire: 1700003600000000},
		"done": {
			State: driver.Done, Kind: driver.KindIdempotent, Token: 7, Attempt: 1, Fingerprint: fingerprint, Origin: origin, FirstSeen: 1700000000500000,
			SealedAt: 1700000001000000, Expire: 1701209601000000, EffectID: "0123456789abcdef0123456789abcdef", Receipt: []byte("ch_17"),
		},
		"done-for-ever": {State: driver.Done, Token: 1, Attempt: 1, FirstSeen: 1700000000500000, SealedAt: 1700000001000000, EffectID: "e"},
		"requeued":      requeued,
		"dead":          {State: driver.Dead, Kind: driver.KindAtMostOnce, InDoubt: true, Token: 9, Attempt: 4, Step: 3, Reason: "in_doubt", Origin: origin, FirstSeen: 1},
		"pending": {
			State: driver.Pending, Kind: driver.KindProbed, Token: 8, Attempt: 1, Fingerprint: fingerprint, Nonce: driver.Nonce{0xde, 0xad}, LeaseEnd: 1700000010500000,
			FirstSeen: 1700000000500000, Origin: origin,
		},
		"pending-retry": {
			State: driver.Pending, Kind: driver.KindProbed, Verdict: driver.VerdictRetry, InDoubt: true, Token: 8, Attempt: 2, Step: 1, NextAttempt: 3, NextStep: 2,
			Nonce: driver.Nonce{0xde, 0xad}, LeaseEnd: 1700000010500000, Due: 1700000005000000, AttemptEnd: 1700000002000000, FirstSeen: 1700000000500000,
			Origin: origin, Reason: "time-out", Prior: &requeued,
		},
		"pending-over-lost": {State: driver.Pending, Verdict: driver.VerdictGiveUp, Token: 1 << 63, Attempt: math.MaxUint32, LeaseEnd: 1, FirstSeen: 1, Prior: &lost},
		"extreme": {
			State: driver.Dead, Kind: 255, Token: math.MaxUint64, Attempt: math.MaxUint32, Step: math.MaxUint32, Takeovers: math.MaxUint32, NextAttempt: 1, NextStep: 1,
			Fingerprint: driver.Fingerprint{Scheme: 255, Sum: [16]byte(bytes.Repeat([]byte{255}, 16))}, AttemptEnd: math.MinInt64, Due: -1, FirstSeen: math.MaxInt64, Expire: math.MaxInt64,
			Origin: driver.Origin{Source: "\x00", Topic: "\xff\x00é", Partition: math.MinInt32, Offset: math.MinInt64, Timestamp: math.MaxInt64}, Reason: "\x00",
		},
		"done-extreme": {
			State: driver.Done, Token: math.MaxUint64, Attempt: math.MaxUint32, FirstSeen: -1, SealedAt: math.MaxInt64 / 2, Expire: math.MaxInt64/2 + math.MaxInt64/2,
			Origin: driver.Origin{Partition: math.MaxInt32, Offset: math.MaxInt64, Timestamp: math.MinInt64}, EffectID: string(bytes.Repeat([]byte{0xff}, driver.MaxEffectID)), Receipt: bytes.Repeat([]byte{0}, 300_000),
		},
	}
}

func same(a, b driver.Record) bool { return reflect.DeepEqual(a, b) }

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
)

func TestRecordIsShownInWords(t *testing.T) {
	const at = 1_777_630_500_123_456
	full := driver.Record{
		State: driver.Pending, Kind: driver.KindProbed, Verdict: driver.VerdictRetry, InDoubt: true, Reason: "timeout",
		Token: 1777630500123456, Attempt: 2, Step: 1, Takeovers: 1, NextAttempt: 3, LeaseEnd: at, AttemptEnd: at + 1e6, Due: at + 2e6,
		FirstSeen: at - 1e6, SealedAt: at + 3e6, Expire: at + 4e6, Fingerprint: fence.FingerprintOf(nil), EffectID: "ch_1",
		Origin:  driver.Origin{Source: "kafka", Topic: "orders", Partition: 3, Offset: 42, Timestamp: at / 1000},
		Receipt: []byte(`{"id":"ch_1"}`), Steps: []driver.Step{{Name: "reserve", Kind: driver.KindIdempotent, Receipt: []byte{0xff, 1}}},
	}
	want := `
state           pending
kind            probed
verdict         retry
in doubt        yes: nobody knows whether the effect was applied
reason          timeout
token           1777630500123456
attempt         2
step            1
takeovers       1
next attempt    3
lease end       2026-05-01T10:15:00.123Z
attempt end     2026-05-01T10:15:01.123Z
due             2026-05-01T10:15:02.123Z
first seen      2026-05-01T10:14:59.123Z
sealed at       2026-05-01T10:15:03.123Z
fingerprint     1:00000000000000000000000000000000
origin          kafka orders, partition 3, offset 42, 2026-05-01T10:15:00.123Z
sink id         ch_1
receipt         "{\"id\":\"ch_1\"}"
step kept       reserve (idempotent) ff01
`
	if got := viewRecord(full, driver.Time(at)).String(); "\n"+got != want {
		t.Errorf("got:\n%swant:%s", got, want)
	}
}

func TestAbsentRecordHasOnlyItsState(t *testing.T) {
	tombstone := driver.Record{Token: 7, Released: driver.Nonce{1}}
	text := viewRecord(tombstone, time.Now()).String()
	object, err := json.Marshal(viewRecord(tombstone, time.Now()))
	if text != "state           absent\n" || string(object) != `{"state":"absent"}` || err != nil {
		t.Errorf("text %q, JSON %s, %v", text, object, err)
	}
}

func TestLongReceiptIsCut(t *testing.T) {
	if got := showReceipt(bytes.Repeat([]byte("x"), 1000)); got != `"`+strings.Repeat("x", 200)+`" and 800 bytes more` {
		t.Errorf("%s", got)
	}
}

func TestEndedLeaseIsSaid(t *testing.T) {
	const end = 1_777_630_500_000_000
	pending := driver.Record{State: driver.Pending, Kind: driver.KindAtMostOnce, Token: 1, LeaseEnd: end}
	for _, c := range []struct {
		name string
		now  int64
		over bool
		edit func(*driver.Record)
	}{
		{"before its end", end - 1, false, func(*driver.Record) {}},
		{"at its end", end, true, func(*driver.Record) {}},
		{"without an end", end, false, func(r *driver.Record) { r.LeaseEnd = 0 }},
		{"after a verdict", end, false, func(r *driver.Record) { r.Verdict = driver.VerdictGiveUp }},
		{"done", end, false, func(r *driver.Record) { r.State = driver.Done }},
	} {
		r := pending
		c.edit(&r)
		v := viewRecord(r, driver.Time(c.now))
		if v.LeaseOver != c.over || strings.Contains(v.String(), "over by this machine's clock") != c.over {
			t.Errorf("%s: %s", c.name, v)
		}
	}
}

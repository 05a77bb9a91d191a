package driver_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/oncefence/oncefence/fence/driver"
)

// handmade joins hex pieces; what follows # is a remark.
func handmade(t *testing.T, text string) []byte {
	t.Helper()
	var all strings.Builder
	for line := range strings.Lines(text) {
		piece, _, _ := strings.Cut(line, "#")
		all.WriteString(strings.Join(strings.Fields(piece), ""))
	}
	out, err := hex.DecodeString(all.String())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRecordByHand checks the format against bytes put together by hand from
// its description.
func TestRecordByHand(t *testing.T) {
	for name, c := range map[string]struct {
		record driver.Record
		bytes  string
	}{
		"done": {
			driver.Record{
				State: driver.Done, Kind: driver.KindProbed, Token: 1000, Attempt: 2, Fingerprint: driver.Fingerprint{Scheme: 1, Sum: [16]byte{0xaa}},
				Origin: driver.Origin{Source: "kafka", Topic: "o", Partition: 3, Offset: 41, Timestamp: 5}, FirstSeen: 3000, SealedAt: 4000, Expire: 4300,
				EffectID: "ab", Receipt: []byte("ok"),
			},
			`646f6e653a 6162 00                  # done:ab
			01 00000000000003e8                  # version, token
			03 01 aa000000000000000000000000000000 # kind, scheme, fingerprint
			02 ac02                              # attempt, retention 300
			a01f                                 # first seen - token = 2000
			04                                   # timestamp - first seen/1000 = 2
			05 6b61666b61 01 6f                  # source, topic
			06 52                                # partition, offset
			6f6b                                 # receipt
			0000000000000fa0                     # sealed at`,
		},
		"pending over requeued": {
			driver.Record{
				State: driver.Pending, Kind: driver.KindAtMostOnce, Verdict: driver.VerdictRetry, InDoubt: true, Token: 2, Attempt: 3, Step: 4, Takeovers: 5, NextAttempt: 6, NextStep: 7,
				Nonce: driver.Nonce{0xde}, Released: driver.Nonce{0xad}, ReleasedToken: 8, LeaseEnd: 9, FirstSeen: 10, Due: 11, AttemptEnd: 12,
				Origin: driver.Origin{Source: "s", Topic: "t", Partition: -1, Offset: 1, Timestamp: 2}, Reason: "r", Steps: []driver.Step{{Name: "n", Kind: driver.KindProbed, Receipt: []byte{0xff}}},
				Prior: &driver.Record{State: driver.Requeued, Token: 1, PriorLost: true, Expire: 13},
			},
			`70656e64696e67 00                   # pending
			01 0000000000000002                  # version, token
			0000000000000009 000000000000000a    # lease end, first seen
			01 04 01 00                          # flags, kind, verdict, scheme
			00000003                             # attempt
			00000000000000000000000000000000     # fingerprint
			0000000000000000                     # expire
			de000000000000000000000000000000     # nonce
			ad000000000000000000000000000000     # released nonce
			0000000000000008                     # released token
			00000004 00000005 00000006 00000007  # step, takeovers, next attempt, next step
			000000000000000b 000000000000000c    # due, attempt end
			0000000f                             # tail length
			01 73 01 74 01 02 04                 # source, topic, partition, offset, timestamp
			01 72                                # reason
			01 01 6e 03 01 ff                    # one step: name, kind, receipt
			7265717565756564 00                  # requeued
			01 0000000000000001
			0000000000000000 0000000000000000
			02 00 00 00                          # prior lost
			00000000
			00000000000000000000000000000000
			000000000000000d                     # expire
			00000000000000000000000000000000
			00000000000000000000000000000000
			0000000000000000
			00000000 00000000 00000000 00000000
			0000000000000000 0000000000000000
			00000007 00 00 00 00 00 00 00        # an empty tail`,
		},
	} {
		want := handmade(t, c.bytes)
		if got := driver.AppendRecord(nil, &c.record); !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %x\nwant %x", name, got, want)
		}
		if r, err := driver.ParseRecord(want); err != nil || !same(r, c.record) {
			t.Errorf("%s: read as %+v, %v", name, r, err)
		}
	}
}

package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
)

// recordView is a stored record as people and programs see it: words for
// numbers, RFC 3339 times in UTC, nothing for what does not apply. Receipts
// are shown: whoever may read the fence may read them.
type recordView struct {
	State       string      `json:"state"`
	Kind        string      `json:"kind,omitempty"`
	Verdict     string      `json:"verdict,omitempty"`
	InDoubt     bool        `json:"in_doubt,omitempty"`
	Reason      string      `json:"reason,omitempty"`
	Token       uint64      `json:"token,omitempty"`
	Attempt     uint32      `json:"attempt,omitempty"`
	Step        uint32      `json:"step,omitempty"`
	Takeovers   uint32      `json:"takeovers,omitempty"`
	NextAttempt uint32      `json:"next_attempt,omitempty"`
	LeaseEnd    string      `json:"lease_end,omitempty"`
	LeaseOver   bool        `json:"lease_over,omitempty"` // and nobody said how it went
	AttemptEnd  string      `json:"attempt_end,omitempty"`
	Due         string      `json:"due,omitempty"`
	FirstSeen   string      `json:"first_seen,omitempty"`
	SealedAt    string      `json:"sealed_at,omitempty"`
	Expires     string      `json:"expires,omitempty"`
	Fingerprint string      `json:"fingerprint,omitempty"`
	Origin      *originView `json:"origin,omitempty"`
	EffectID    string      `json:"sink_id,omitempty"`
	Receipt     []byte      `json:"receipt,omitempty"` // base64 in JSON
	Steps       []stepView  `json:"steps,omitempty"`
}

type originView struct {
	Source    string `json:"source,omitempty"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Timestamp string `json:"timestamp,omitempty"`
}

type stepView struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Receipt []byte `json:"receipt,omitempty"`
}

// viewRecord judges leases by now; the store, which decides, has its own clock.
func viewRecord(r driver.Record, now time.Time) *recordView {
	v := &recordView{
		State: r.State.String(), InDoubt: r.InDoubt, Reason: r.Reason, Token: r.Token, Attempt: r.Attempt, Step: r.Step,
		Takeovers: r.Takeovers, NextAttempt: r.NextAttempt, LeaseEnd: stamp(r.LeaseEnd), AttemptEnd: stamp(r.AttemptEnd),
		Due: stamp(r.Due), FirstSeen: stamp(r.FirstSeen), SealedAt: stamp(r.SealedAt), Expires: stamp(expiry(&r)),
		EffectID: r.EffectID, Receipt: r.Receipt,
	}
	if r.State == driver.Absent {
		return &recordView{State: v.State}
	}
	v.Kind = r.Kind.String()
	v.LeaseOver = r.State == driver.Pending && r.Doubtful(driver.Micros(now)) && !r.InDoubt
	if r.Verdict != driver.NoVerdict {
		v.Verdict = r.Verdict.String()
	}
	if r.Fingerprint.Scheme != 0 {
		v.Fingerprint = fence.FormatFingerprint(r.Fingerprint)
	}
	if r.Origin != (driver.Origin{}) {
		v.Origin = &originView{
			Source: r.Origin.Source, Topic: r.Origin.Topic, Partition: r.Origin.Partition, Offset: r.Origin.Offset,
			Timestamp: stamp(r.Origin.Timestamp * 1000),
		}
	}
	for _, s := range r.Steps {
		v.Steps = append(v.Steps, stepView{Name: s.Name, Kind: s.Kind.String(), Receipt: s.Receipt})
	}
	return v
}

// stamp prints microseconds since 1970, nothing for 0.
func stamp(micros int64) string {
	if micros == 0 {
		return ""
	}
	return time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.000Z")
}

// String is the record for people, one field a line.
func (v *recordView) String() string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-15s %s\n", name, value)
		}
	}
	count := func(name string, n uint64) {
		if n != 0 {
			line(name, fmt.Sprint(n))
		}
	}
	line("state", v.State)
	line("kind", v.Kind)
	line("verdict", v.Verdict)
	if v.InDoubt {
		line("in doubt", "yes: nobody knows whether the effect was applied")
	}
	line("reason", v.Reason)
	count("token", v.Token)
	count("attempt", uint64(v.Attempt))
	count("step", uint64(v.Step))
	count("takeovers", uint64(v.Takeovers))
	count("next attempt", uint64(v.NextAttempt))
	if v.LeaseOver {
		line("lease end", v.LeaseEnd+", over by this machine's clock: in doubt once it is claimed again")
	} else {
		line("lease end", v.LeaseEnd)
	}
	line("attempt end", v.AttemptEnd)
	line("due", v.Due)
	line("first seen", v.FirstSeen)
	line("sealed at", v.SealedAt)
	line("expires", v.Expires)
	line("fingerprint", v.Fingerprint)
	if o := v.Origin; o != nil {
		where := fmt.Sprintf("%s, partition %d, offset %d", o.Topic, o.Partition, o.Offset)
		if o.Source != "" {
			where = o.Source + " " + where
		}
		if o.Timestamp != "" {
			where += ", " + o.Timestamp
		}
		line("origin", where)
	}
	line("sink id", v.EffectID)
	line("receipt", showReceipt(v.Receipt))
	for _, s := range v.Steps {
		line("step kept", s.Name+" ("+s.Kind+") "+showReceipt(s.Receipt))
	}
	return b.String()
}

// showReceipt prints a receipt on one line, cut after 200 bytes.
func showReceipt(b []byte) string {
	const most = 200
	switch {
	case len(b) == 0:
		return ""
	case len(b) > most:
		return fmt.Sprintf("%q and %d bytes more", b[:most], len(b)-most)
	case utf8.Valid(b):
		return fmt.Sprintf("%q", b)
	default:
		return fmt.Sprintf("%x", b)
	}
}

// expiry is when the record goes, 0 for never: doubt stays until it is resolved.
func expiry(r *driver.Record) int64 {
	if r.State == driver.Pending || (r.InDoubt && r.State != driver.Done) {
		return 0
	}
	return r.Expire
}

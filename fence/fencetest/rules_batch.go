package fencetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/oncefence/oncefence/fence/driver"
)

// batchRules: many items, large items, odd bytes, the caller's memory.
var batchRules = []Rule{
	{
		Name: "batch/mixed", Says: "a batch of 600 answers each item by itself, in order, whatever its neighbours are answered",
		check: func(s *scene) {
			const n = 600
			claims := make([]driver.Claim, n)
			for i := range claims {
				claims[i] = s.ask(s.key())
			}
			first := s.claimAll(claims)
			transitions := make([]driver.Transition, n)
			for i, c := range first {
				s.want(c.Err == nil && c.Answer == driver.New, "claim %d: %v, %v", i, c.Answer, c.Err)
				op := []driver.Op{driver.Renew, driver.Seal, driver.HandOver, driver.Bury, driver.Release, driver.Seal}[i%6]
				transitions[i] = holder{s, claims[i], c.Record}.says(op)
				if i%6 == 5 {
					transitions[i].Key = s.key() // vanished
				}
				if i%12 == 0 {
					transitions[i].Token++ // refused
				}
			}
			for i, a := range s.applyAll(transitions) {
				want := driver.OK
				switch {
				case i%6 == 5:
					want = driver.Vanished
				case i%12 == 0:
					want = driver.Refused
				}
				s.want(a.Err == nil && a.Outcome == want, "%v %d was answered %v, want %v, error %v", transitions[i].Op, i, a.Outcome, want, a.Err)
			}
			for i := range claims {
				claims[i].Nonce = nonce()
			}
			tooLate := s.now() - 1
			for i := 0; i < n; i += 100 {
				claims[i].NotAfter = tooLate
			}
			answers := []driver.Answer{driver.Held, driver.Duplicate, driver.Superseded, driver.IsDead, driver.New, driver.Held}
			for i, c := range s.claimAll(claims) {
				if i%100 == 0 {
					s.want(c.Err != nil, "claim %d came too late and was answered %v", i, c.Answer)
					continue
				}
				s.want(c.Err == nil && c.Answer == answers[i%6], "claim %d was answered %v, want %v, error %v", i, c.Answer, answers[i%6], c.Err)
			}
			for i, r := range s.getAll(digests(claims)) {
				state := []driver.State{driver.Pending, driver.Done, driver.Requeued, driver.Dead, driver.Pending, driver.Pending}[i%6]
				if i%6 == 4 && i%100 == 0 {
					state = driver.Absent
				}
				s.want(r.State == state, "record %d is %v, want %v", i, r.State, state)
			}
		},
	},
	{
		Name: "batch/empty", Says: "an empty batch is answered by an empty one",
		check: func(s *scene) {
			s.want(len(s.claimAll(nil)) == 0 && len(s.applyAll(nil)) == 0, "it was not")
		},
	},
	{
		Name: "batch/large-receipt", Says: "a receipt of 300 kB, a reason of 10 kB and 100 journal steps come back whole",
		check: func(s *scene) {
			receipt := bytes.Repeat([]byte("0123456789abcdef\x00\xff"), 300_000/18+1)
			h := s.hold(driver.New, s.key())
			h.does(driver.Seal, func(t *driver.Transition) { t.Receipt = receipt })
			s.want(bytes.Equal(h.get().Receipt, receipt), "the receipt came back with %d bytes of %d, or other ones", len(h.get().Receipt), len(receipt))
			s.want(bytes.Equal(s.answers(driver.Duplicate, h.key()).Record.Receipt, receipt), "the duplicate's receipt is another one")
			steps := make([]driver.Step, 100)
			for i := range steps {
				steps[i] = driver.Step{Name: fmt.Sprint("step ", i), Kind: driver.KindProbed, Receipt: receipt[:i*10]}
			}
			dead := s.hold(driver.New, s.key())
			dead.does(driver.Keep, func(t *driver.Transition) { t.Steps = steps })
			s.want(diffSteps(dead.get().Steps, steps) == "", "%s", diffSteps(dead.get().Steps, steps))
			dead.does(driver.Bury, func(t *driver.Transition) { t.Reason, t.Steps = strings.Repeat("reason ", 1500), steps })
			s.want(dead.get().Reason == strings.Repeat("reason ", 1500), "the reason came back with %d bytes", len(dead.get().Reason))
			s.want(diffSteps(dead.get().Steps, steps) == "", "%s", diffSteps(dead.get().Steps, steps))
		},
	},
	{
		Name: "batch/odd-bytes", Says: "odd bytes and extreme numbers come back as they were, in keys, nonces, topics, effect ids, receipts, reasons, offsets and times",
		check: func(s *scene) {
			odd := string([]byte{0, 1, '\r', '\n', '"', '\'', '\\', '{', '}', ':', '%', '*', '?', '[', 0x7f, 0x80, 0xff, 0xfe}) + "é\u2028"
			for i, fill := range []byte{0, 0xff, '}', '\n', '*', 0x80} {
				key := driver.Digest(bytes.Repeat([]byte{fill}, 32))
				c := s.ask(key, func(c *driver.Claim) {
					c.Nonce = driver.Nonce(bytes.Repeat([]byte{^fill}, 16))
					c.Fingerprint = driver.Fingerprint{Scheme: 255, Sum: [16]byte(bytes.Repeat([]byte{fill}, 16))}
					c.Origin = driver.Origin{Source: odd, Topic: odd + odd, Partition: -1 << 31, Offset: -1 << 63, Timestamp: -1}
					c.Attempt, c.Step = 1<<32-3, 1<<32-3
				})
				if i%2 == 1 {
					c.Origin = driver.Origin{Partition: 1<<31 - 1, Offset: 1<<63 - 1, Timestamp: 1 << 53}
				}
				out := s.send(c)
				s.want(out.Answer == driver.New, "key %x: answered %v", fill, out.Answer)
				s.want(out.Record.Origin == c.Origin && out.Record.Nonce == c.Nonce && out.Record.Fingerprint == c.Fingerprint && out.Record.Attempt == c.Attempt, "key %x: origin, nonce, fingerprint or attempt changed", fill)
				s.equal("the stored record", s.get(key), out.Record)
				h := holder{s, c, out.Record}
				t := h.says(driver.HandOver, func(t *driver.Transition) { t.Reason, t.Attempt = odd, c.Attempt+1 })
				s.equal("after hand over", ended(driver.Requeued, t, s.does(driver.OK, t).Now), h.get())
				t = h.says(driver.Seal, func(t *driver.Transition) { t.EffectID, t.Receipt = "\x7f\x80\xff {}:%*\" é", []byte(odd) })
				s.equal("after seal", sealed(t, s.does(driver.Late, t).Now), h.get())
			}
			s.want(len(s.scan(driver.Filter{})) == 6, "scan shows %d records, want 6", len(s.scan(driver.Filter{})))
		},
	},
	{
		Name: "batch/no-shared-memory", Says: "a store keeps nothing of the caller's memory and gives nothing of its own away",
		check: func(s *scene) {
			receipt, step := []byte("receipt"), []byte("step")
			h := s.hold(driver.New, s.key())
			h.does(driver.Keep, func(t *driver.Transition) { t.Steps = []driver.Step{{Name: "a", Receipt: step}} })
			step[0] = 'X'
			s.want(string(h.get().Steps[0].Receipt) == "step", "a later change of the caller's step reached the store")
			h.get().Steps[0].Receipt[0] = 'X'
			s.want(string(h.get().Steps[0].Receipt) == "step", "a change of an answer reached the store")
			h.does(driver.Seal, func(t *driver.Transition) { t.Receipt = receipt })
			receipt[0] = 'X'
			s.want(string(h.get().Receipt) == "receipt", "a later change of the caller's receipt reached the store")
			h.get().Receipt[0] = 'X'
			s.want(string(h.get().Receipt) == "receipt", "a change of an answer reached the next one")
			s.want(string(s.answers(driver.Duplicate, h.key()).Record.Receipt) == "receipt", "a change of an answer reached the store")
		},
	},
	{
		Name: "batch/input-kept", Says: "a store does not change or reorder the batch that it is given",
		check: func(s *scene) {
			claims := []driver.Claim{s.ask(s.key()), s.ask(s.key()), s.ask(s.key())}
			before := slices.Clone(claims)
			out := s.claimAll(claims)
			s.want(slices.Equal(claims, before), "the claims were changed")
			transitions := make([]driver.Transition, len(out))
			for i := range out {
				s.want(out[i].Record.Nonce == claims[i].Nonce, "answer %d belongs to another claim", i)
				transitions[i] = holder{s, claims[i], out[i].Record}.says(driver.Seal)
			}
			keys := digests(claims)
			s.applyAll(transitions)
			for i := range transitions {
				s.want(transitions[i].Key == keys[i], "the transitions were reordered")
			}
		},
	},
}

func digests(claims []driver.Claim) []driver.Digest {
	out := make([]driver.Digest, len(claims))
	for i := range claims {
		out[i] = claims[i].Key
	}
	return out
}

package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/oncefence/oncefence/fence"
)

// File is fence/testdata/keys.json: questions, and what the library answers.
type File struct {
	About        string        `json:"about"`
	Keys         []Key         `json:"keys"`
	Records      []Record      `json:"records"`
	Named        []Named       `json:"named"`
	Fingerprints []Fingerprint `json:"fingerprints"`
	Refused      []Refused     `json:"refused"`
}

// Key is a list of parts and all that follows from it.
type Key struct {
	Name      string `json:"name"`
	Parts     []Part `json:"parts"`
	Namespace []Part `json:"namespace"` // tenant, group
	Answer
}

// Record is a Kafka record's key under one scope.
type Record struct {
	Scope      string `json:"scope"`
	Topic      string `json:"topic"`
	Partition  int32  `json:"partition"`
	MessageKey Part   `json:"message_key"`
	Dedupe     []Part `json:"dedupe"`
	Namespace  []Part `json:"namespace"`
	Answer
}

// Named is a key of another make: general, event, document or index.
type Named struct {
	Make string   `json:"make"`
	Args []string `json:"args"`
	Answer
}

// Answer is what the library makes of a key.
type Answer struct {
	Text          string `json:"text"`
	Digest        string `json:"digest"`
	NamespaceText string `json:"namespace_text,omitempty"`
	EffectID      string `json:"effect_id,omitempty"`
}

// Fingerprint is a payload in hex, or null, and the answer to it.
type Fingerprint struct {
	ValueHex    json.RawMessage `json:"value_hex"`
	Fingerprint string          `json:"fingerprint"`
}

// Refused is a text that no key has, and why, in our words.
type Refused struct {
	Text string `json:"text"`
	Why  string `json:"why"`
}

// Part is a key part, with the file's notation for it.
type Part struct {
	fence.Part
	notation json.RawMessage
}

// MarshalJSON gives the notation back unchanged.
func (p Part) MarshalJSON() ([]byte, error) { return p.notation, nil }

// UnmarshalJSON reads the notation that File.About explains.
func (p *Part) UnmarshalJSON(b []byte) error {
	p.notation = append(json.RawMessage{}, b...)
	var s *string
	if json.Unmarshal(b, &s) == nil {
		p.Part = fence.Nil
		if s != nil {
			p.Part = fence.Text(*s)
		}
		return nil
	}
	var made struct {
		Hex      *string         `json:"hex"`
		OffsetID *originOffset   `json:"offset_id"`
		Payload  json.RawMessage `json:"payload_id"`
	}
	if err := json.Unmarshal(b, &made); err != nil {
		return err
	}
	switch {
	case made.Hex != nil:
		raw, err := hex.DecodeString(*made.Hex)
		p.Part = fence.Bytes(append([]byte{}, raw...))
		return err
	case made.OffsetID != nil:
		id, err := hex.DecodeString(made.OffsetID.TopicID)
		if err != nil || len(id) != 16 {
			return fmt.Errorf("topic id %q is not 16 bytes in hex", made.OffsetID.TopicID)
		}
		p.Part = fence.OffsetID([16]byte(id), made.OffsetID.LeaderEpoch, made.OffsetID.Offset)
		return nil
	case made.Payload != nil:
		raw, err := payload(made.Payload)
		p.Part = fence.PayloadID(raw)
		return err
	}
	return fmt.Errorf("part %s is none of null, string, hex, offset_id, payload_id", b)
}

type originOffset struct {
	TopicID     string `json:"topic_id"`
	LeaderEpoch int32  `json:"leader_epoch"`
	Offset      int64  `json:"offset"`
}

// payload reads hex, or null for the nil payload.
func payload(b json.RawMessage) ([]byte, error) {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil || s == nil {
		return nil, err
	}
	raw, err := hex.DecodeString(*s)
	return append([]byte{}, raw...), err
}

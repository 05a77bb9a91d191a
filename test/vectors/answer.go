package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/oncefence/oncefence/fence"
)

// Answered reads a vector file and writes it with the library's answers in
// place of those it holds.
func Answered(file []byte) ([]byte, error) {
	var f File
	decoder := json.NewDecoder(bytes.NewReader(file))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return nil, err
	}
	for i := range f.Keys {
		if err := f.Keys[i].answer(); err != nil {
			return nil, fmt.Errorf("key %q: %w", f.Keys[i].Name, err)
		}
	}
	for i := range f.Records {
		if err := f.Records[i].answer(); err != nil {
			return nil, fmt.Errorf("record %d: %w", i, err)
		}
	}
	for i := range f.Named {
		if err := f.Named[i].answer(); err != nil {
			return nil, fmt.Errorf("%s key %d: %w", f.Named[i].Make, i, err)
		}
	}
	for i := range f.Fingerprints {
		value, err := payload(f.Fingerprints[i].ValueHex)
		if err != nil {
			return nil, fmt.Errorf("fingerprint %d: %w", i, err)
		}
		f.Fingerprints[i].Fingerprint = fence.FormatFingerprint(fence.FingerprintOf(value))
	}
	for _, r := range f.Refused {
		if _, err := fence.ParseKey(r.Text); err == nil {
			return nil, fmt.Errorf("the text %q is a key's, though %s", r.Text, r.Why)
		}
	}
	return layOut(f)
}

func (k *Key) answer() (err error) {
	k.Answer, err = answer(fence.JoinKey(bare(k.Parts)...), k.Namespace)
	return err
}

func (r *Record) answer() error {
	scope, err := fence.ParseScope(r.Scope)
	if err != nil {
		return err
	}
	r.Answer, err = answer(fence.RecordKey(scope, r.Topic, r.Partition, r.MessageKey.Part, bare(r.Dedupe)...), r.Namespace)
	return err
}

func (n *Named) answer() error {
	a := append(n.Args, "", "", "", "", "")
	var key fence.Key
	switch n.Make {
	case "general":
		key = fence.GeneralKey(a[0], a[1], a[2], a[3], a[4])
	case "event":
		step, err := strconv.Atoi(a[2])
		if err != nil {
			return err
		}
		key = fence.EventKey(a[0], a[1], step)
	case "document":
		key = fence.DocumentKey(a[0], a[1])
	case "index":
		key = fence.IndexKey(a[0])
	default:
		return fmt.Errorf("no such make")
	}
	n.Text, n.Digest = key.Text(), key.Hex()
	return nil
}

func answer(key fence.Key, namespace []Part) (Answer, error) {
	if len(namespace) != 2 {
		return Answer{}, fmt.Errorf("namespace has %d parts, want tenant and group", len(namespace))
	}
	ns, err := fence.NewNamespace(namespace[0].Part, string(namespace[1].Value()))
	if err != nil {
		return Answer{}, err
	}
	return Answer{
		Text:          key.Text(),
		Digest:        key.Hex(),
		NamespaceText: ns.Text(),
		EffectID:      fence.EffectID(ns, key),
	}, nil
}

func bare(parts []Part) []fence.Part {
	out := make([]fence.Part, len(parts))
	for i, p := range parts {
		out[i] = p.Part
	}
	return out
}

// layOut writes one vector per line, which JSON's own indenting cannot do.
func layOut(f File) ([]byte, error) {
	var out bytes.Buffer
	var failed error
	line := func(v any, indent, end string) {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(v); err != nil {
			failed = err
		}
		out.WriteString(indent + string(bytes.TrimSpace(b.Bytes())) + end + "\n")
	}
	out.WriteString("{\n")
	line(json.RawMessage(`"about"`), "", ":")
	line(f.About, "", ",")
	list := func(name string, n int, at func(int) any, end string) {
		fmt.Fprintf(&out, "%q: [\n", name)
		for i := range n {
			comma := ","
			if i == n-1 {
				comma = ""
			}
			line(at(i), " ", comma)
		}
		out.WriteString("]" + end + "\n")
	}
	list("keys", len(f.Keys), func(i int) any { return f.Keys[i] }, ",")
	list("records", len(f.Records), func(i int) any { return f.Records[i] }, ",")
	list("named", len(f.Named), func(i int) any { return f.Named[i] }, ",")
	list("fingerprints", len(f.Fingerprints), func(i int) any { return f.Fingerprints[i] }, ",")
	list("refused", len(f.Refused), func(i int) any { return f.Refused[i] }, "")
	out.WriteString("}\n")
	return out.Bytes(), failed
}

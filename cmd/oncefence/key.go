package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/internal/fenceurl"
)

var keyCommand = command{name: "key", summary: "print a record's key, digest and effect id, and what a fence holds for it", run: runKey}

const keyUsage = `
Usage: oncefence key [FLAGS] TOPIC PARTITION MESSAGE-KEY DEDUPE-ID
       oncefence key [FLAGS] --nil-key TOPIC PARTITION DEDUPE-ID
       oncefence key [FLAGS] --text TEXT

Prints the canonical text of a record's key, its digest, the effect id in a
namespace and, with a fence, the stored record. Nothing is written anywhere.
Bytes that a shell cannot pass can be given with --text, escaped as %XX.`

// readTimeout is how long a fence may take to open and answer.
const readTimeout = 15 * time.Second

// keyAnswer is what the command found out; its JSON is part of the command.
type keyAnswer struct {
	Text      string      `json:"text"`
	Digest    string      `json:"digest"`
	Namespace string      `json:"namespace,omitempty"`
	EffectID  string      `json:"effect_id,omitempty"`
	Notes     []string    `json:"notes,omitempty"`
	Fence     string      `json:"fence,omitempty"`
	Record    *recordView `json:"record,omitempty"`
}

func runKey(ctx context.Context, args []string, out streams) error {
	flags := newFlags("key", keyUsage)
	scope := flags.String("scope", "partition", "`SCOPE` of the key: partition (default), topic (leaves the partition out) or id (the dedupe id alone)")
	nilKey := flags.Bool("nil-key", false, "the message has no key, which is not an empty one")
	ceSource := flags.String("ce-source", "", "CloudEvents `SOURCE`; the dedupe id is then the event's id")
	text := flags.String("text", "", "the canonical `TEXT` of a key, instead of its parts")
	namespace := flags.String("namespace", "", "`TENANT:GROUP`, or a group alone for no tenant; the effect id needs it")
	url := flags.String("fence", "", "also read the record from the fence at this `URL`: "+fenceurl.Lasting)
	asJSON := flags.Bool("json", false, "print one JSON object")
	args, err := flags.parse(args, out)
	if err != nil {
		return err
	}

	var key fence.Key
	if *text != "" {
		if len(args) > 0 || *nilKey || *ceSource != "" {
			return flags.usagef("--text already says all parts of the key")
		}
		key, err = fence.KeyFromText(*text)
	} else {
		key, err = keyFromArgs(*scope, *nilKey, *ceSource, args)
	}
	if err != nil {
		return flags.usagef("%v", err)
	}
	answer := keyAnswer{Text: key.Text(), Digest: key.Hex(), Notes: fence.LintKey(key.Text())}

	var ns fence.Namespace
	if *namespace != "" {
		if ns, err = parseNamespace(*namespace); err != nil {
			return flags.usagef("%v", err)
		}
		answer.Namespace, answer.EffectID = ns.Text(), fence.EffectID(ns, key)
	}
	if *url != "" {
		if ns.IsZero() {
			return flags.usagef("--fence needs --namespace: records are kept per tenant and group")
		}
		record, err := readRecord(ctx, *url, ns, key)
		if err != nil {
			return err
		}
		answer.Fence, answer.Record = fenceurl.Redact(*url), viewRecord(record, time.Now())
	}
	if *asJSON {
		encoder := json.NewEncoder(out.stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(answer)
	}
	return out.print(answer.String())
}

// keyFromArgs makes the key that a record with these arguments has.
func keyFromArgs(scopeName string, nilKey bool, ceSource string, args []string) (fence.Key, error) {
	scope, err := fence.ParseScope(scopeName)
	if err != nil {
		return fence.Key{}, err
	}
	messageKey := fence.Nil
	switch {
	case nilKey && len(args) == 3:
	case nilKey && len(args) == 4 && args[2] != "":
		return fence.Key{}, fmt.Errorf("--nil-key and the message key %q contradict each other", args[2])
	case len(args) == 4:
		if !nilKey {
			messageKey = fence.Text(args[2])
		}
	case nilKey:
		return fence.Key{}, fmt.Errorf("got %d arguments, want TOPIC PARTITION DEDUPE-ID", len(args))
	default:
		return fence.Key{}, fmt.Errorf("got %d arguments, want TOPIC PARTITION MESSAGE-KEY DEDUPE-ID", len(args))
	}
	partition, err := strconv.ParseInt(args[1], 10, 32)
	if err != nil || partition < 0 {
		return fence.Key{}, fmt.Errorf("partition %q is not a number from 0 to 2147483647", args[1])
	}
	id := args[len(args)-1]
	switch {
	case args[0] == "":
		return fence.Key{}, fmt.Errorf("the topic is empty")
	case id == "":
		return fence.Key{}, fmt.Errorf("the dedupe id is empty, which counts as missing: a consumer would use its policy for missing ids")
	case ceSource != "":
		return fence.RecordKey(scope, args[0], int32(partition), messageKey, fence.Text(ceSource), fence.Text(id)), nil
	default:
		return fence.RecordKey(scope, args[0], int32(partition), messageKey, fence.Text(id)), nil
	}
}

// parseNamespace reads tenant:group as canonical text, and a text without a
// colon as the name of a group that has no tenant.
func parseNamespace(text string) (fence.Namespace, error) {
	if !strings.Contains(text, ":") {
		return fence.NewNamespace(fence.Nil, text)
	}
	return fence.ParseNamespace(text)
}

// readRecord asks the store directly: opening a space would make the
// namespace's marker.
func readRecord(ctx context.Context, url string, ns fence.Namespace, key fence.Key) (record driver.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	f, err := fenceurl.OpenWith(ctx, url, &fenceurl.Options{MustExist: true})
	if err != nil {
		return record, err
	}
	defer func() {
		if closed := f.Close(); err == nil && closed != nil {
			err = fmt.Errorf("close fence %s: %w", fenceurl.Redact(url), closed)
		}
	}()
	records, err := f.Store().Get(ctx, ns.Text(), []driver.Digest{key.Digest()})
	if err != nil {
		return record, fmt.Errorf("read key %s in namespace %s from fence %s: %w", key, ns, fenceurl.Redact(url), err)
	}
	return records[0], nil
}

// String is the answer for people.
func (a keyAnswer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "key text        %s\n", a.Text)
	fmt.Fprintf(&b, "digest          %s\n", a.Digest)
	if a.Namespace == "" {
		b.WriteString("effect id       differs between groups: add --namespace\n")
	} else {
		fmt.Fprintf(&b, "namespace text  %s\n", a.Namespace)
		fmt.Fprintf(&b, "effect id       %s\n", a.EffectID)
	}
	for _, note := range a.Notes {
		fmt.Fprintf(&b, "note            %s\n", note)
	}
	if a.Record != nil {
		fmt.Fprintf(&b, "fence           %s\n%s", a.Fence, a.Record)
	}
	return b.String()
}

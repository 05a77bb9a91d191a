package main

import (
	"strings"
	"testing"
)

func TestKeyOutput(t *testing.T) {
	golden(t, "key", "key", "orders", "3", "customer-1", "order-1")
	golden(t, "key-namespace", "key", "orders", "3", "customer-1", "order-1", "--namespace", "%-:billing")
	golden(t, "key-json", "key", "--json", "--namespace=acme:billing", "orders", "3", "{customer}", "order:1")
	golden(t, "key-note", "key", "--scope", "topic", "orders", "3", "customer-1", "3d813cbb-47fb-42ba-91df-831e1593ac29")
	golden(t, "key-text", "key", "--text", "orders:3:%00%FF:%@0123456789abcdef0123456789abcdef/7/42", "--namespace", "billing")
}

func TestKeyText(t *testing.T) {
	cases := []struct {
		want string
		args string // split at |
	}{
		{"orders:3:c:o", "orders|3|c|o"},
		{"orders:3::o", "orders|3||o"},
		{"orders:3:%-:o", "--nil-key|orders|3|o"},
		{"orders:3:%-:o", "orders|3||o|--nil-key"},
		{"orders::c:o", "--scope|topic|orders|3|c|o"},
		{"orders::c:o", "orders|3|--scope=topic|c|o"},
		{":::o", "-scope|id|orders|3|c|o"},
		{":::o", "--scope=id|--nil-key|orders|3|o"},
		{"orders:3:c:https%3A//shop/:o", "orders|3|c|o|--ce-source|https://shop/"},
		{"orders:3:--json:-o", "--|orders|3|--json|-o"},
		{"orders:3:-:o", "orders|3|-|o"},
		{"orders:0:c:%C3%BC", "orders|000|c|ü"},
		{"a:%-:", "--text|a:%-:"},
	}
	for _, c := range cases {
		status, stdout, stderr := call(t, append([]string{"key"}, strings.Split(c.args, "|")...)...)
		if status != 0 || !strings.HasPrefix(stdout, "key text        "+c.want+"\n") || stderr != "" {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q, want the key %s", c.args, status, stdout, stderr, c.want)
		}
	}
}

func TestKeyRefuses(t *testing.T) {
	cases := []struct {
		why  string
		args string // split at |
	}{
		{"got 0 arguments, want TOPIC PARTITION MESSAGE-KEY DEDUPE-ID", ""},
		{"got 3 arguments, want TOPIC PARTITION MESSAGE-KEY DEDUPE-ID", "orders|3|o"},
		{"got 5 arguments", "orders|3|c|o|x"},
		{"got 2 arguments, want TOPIC PARTITION DEDUPE-ID", "--nil-key|orders|3"},
		{"contradict", "--nil-key|orders|3|c|o"},
		{"the topic is empty", "|3|c|o"},
		{"the dedupe id is empty", "orders|3|c|"},
		{`partition "x"`, "orders|x|c|o"},
		{`partition "2147483648"`, "orders|2147483648|c|o"},
		{`partition "-1"`, "--|orders|-1|c|o"},
		{"not defined: -1", "orders|-1|c|o"},
		{"not defined: -nope", "orders|3|c|o|--nope"},
		{"needs an argument", "orders|3|c|o|--scope"},
		{`key scope "all" is not known: use partition, topic or id`, "--scope|all|orders|3|c|o"},
		{`namespace "a:b:c"`, "--namespace|a:b:c|orders|3|c|o"},
		{"not canonical: part 2, byte 2", "--text|a:%3a"},
		{"--text already says", "--text|a|orders"},
		{"--text already says", "--text|a|--nil-key"},
		{"--fence needs --namespace", "--fence|mem:|orders|3|c|o"},
	}
	for _, c := range cases {
		args := []string{"key"}
		if c.args != "" {
			args = append(args, strings.Split(c.args, "|")...)
		}
		status, stdout, stderr := call(t, args...)
		if status != 2 || stdout != "" || !strings.Contains(stderr, c.why) || !strings.HasSuffix(stderr, "See: oncefence key --help\n") {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q, want 2 and %s", c.args, status, stdout, stderr, c.why)
		}
	}
}

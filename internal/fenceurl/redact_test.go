package fenceurl

import "testing"

func TestRedactNeverPrintsAPassword(t *testing.T) {
	cases := []struct{ raw, want string }{
		{"mem:", "mem:"},
		{"bolt:/var/lib/f@nce.db", "bolt:/var/lib/f@nce.db"},
		{"bolt:rel/fence.db", "bolt:rel/fence.db"},
		{"redis://localhost:6379/2", "redis://localhost:6379/2"},
		{"redis://:secret@localhost:6379", "redis://localhost:6379"},
		{"redis://user:secret@localhost:6379/1", "redis://user@localhost:6379/1"},
		{"rediss://user@localhost", "rediss://user@localhost"},
		{"redis://h:1?addr=h2:2&password=secret&master_name=m", "redis://h:1?addr=h2%3A2&master_name=m"},
		{"redis://h:1?Sentinel_Password=secret", "redis://h:1"},
		{"postgres://user:secret@db/app?sslmode=require", "postgres://user@db/app?sslmode=require"},
		{"redis://user:sec/ret@host", "redis:(unreadable)"},
		{"redis://user:12/secret@host", "redis:(unreadable)"},
		{"redis://user:12#secret@host", "redis:(unreadable)"},
		{"redis:user:secret@host", "redis:(unreadable)"},
		{"redis://user:se%zzcret@host", "redis:(unreadable)"},
		{"user:secret@host:6379", "user:(unreadable)"},
		{"secret@host:6379", "(unreadable)"},
		{"secret@host", "(unreadable)"},
		{"localhost:6379", "localhost:6379"},
		{"", ""},
	}
	for _, c := range cases {
		if got := Redact(c.raw); got != c.want {
			t.Errorf("Redact(%q) = %q, want %q", c.raw, got, c.want)
		}
	}
}

package httpeffect

import (
	"context"
	"net/http/httptrace"
	"testing"
)

// The steps of a request as a transport reports them.
func TestTrackerProof(t *testing.T) {
	ours := func() *conn { return &conn{Conn: &sinkConn{}} }
	first, second := ours(), ours()
	write := func(c *conn) {
		if _, err := c.Write([]byte("bytes")); err != nil {
			t.Fatal(err)
		}
	}
	get := func(tr *httptrace.ClientTrace) { tr.GetConn("sink:80") }
	got := func(tr *httptrace.ClientTrace, c *conn) { tr.GotConn(httptrace.GotConnInfo{Conn: c, Reused: true}) }
	field := func(tr *httptrace.ClientTrace) { tr.WroteHeaderField("Host", []string{"sink"}) }

	tests := []struct {
		name   string
		known  bool
		steps  func(tr *httptrace.ClientTrace)
		proven bool
		reused bool
	}{
		{"silence of a foreign transport", false, func(*httptrace.ClientTrace) {}, false, false},
		{"silence of ours", true, func(*httptrace.ClientTrace) {}, true, false},
		{"no connection", false, func(tr *httptrace.ClientTrace) { get(tr) }, true, false},
		{"a foreign connection", false, func(tr *httptrace.ClientTrace) {
			get(tr)
			tr.GotConn(httptrace.GotConnInfo{Conn: &sinkConn{}})
		}, false, false},
		{"a connection and nothing more", true, func(tr *httptrace.ClientTrace) { get(tr); got(tr, ours()) }, true, true},
		{"a header that stayed in the buffer", true, func(tr *httptrace.ClientTrace) { get(tr); got(tr, ours()); field(tr) }, true, true},
		{"a header and bytes", true, func(tr *httptrace.ClientTrace) {
			c := ours()
			get(tr)
			got(tr, c)
			field(tr)
			write(c)
		}, false, true},
		{"bytes without a header: the farewell of TLS", true, func(tr *httptrace.ClientTrace) {
			c := ours()
			get(tr)
			got(tr, c)
			write(c)
		}, true, true},
		{"bytes of an earlier request", true, func(tr *httptrace.ClientTrace) {
			c := ours()
			write(c)
			get(tr)
			got(tr, c)
			field(tr)
		}, true, true},
		{"a second connection after an unused one", true, func(tr *httptrace.ClientTrace) {
			get(tr)
			got(tr, first)
			field(tr)
			get(tr)
			got(tr, ours())
		}, true, true},
		{"no second connection after a used one", true, func(tr *httptrace.ClientTrace) {
			get(tr)
			got(tr, second)
			field(tr)
			write(second)
			get(tr)
		}, false, false},
		{"no second connection after a foreign one", false, func(tr *httptrace.ClientTrace) {
			get(tr)
			tr.GotConn(httptrace.GotConnInfo{Conn: &sinkConn{}})
			get(tr)
		}, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tracked := &tracker{known: tt.known}
			tt.steps(httptrace.ContextClientTrace(tracked.context(context.Background())))
			if proven, reused := tracked.unwritten(); proven != tt.proven || reused != tt.reused {
				t.Errorf("unwritten = %v, %v; want %v, %v", proven, reused, tt.proven, tt.reused)
			}
		})
	}
	if _, err := first.Write(nil); err == nil {
		t.Error("a connection that was given up for another can still be written to")
	}
}

func TestTrackerKeepsTheCallersTrace(t *testing.T) {
	called := 0
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GetConn: func(string) { called++ }})
	httptrace.ContextClientTrace((&tracker{}).context(ctx)).GetConn("sink:80")
	if called != 1 {
		t.Errorf("the caller's hook was called %d times, want 1", called)
	}
}

package httpeffect

import (
	"context"
	"net/http/httptrace"
	"sync"
)

// tracker watches one request on its way out. Its hooks are called from several
// goroutines, some of them after the request was given up.
type tracker struct {
	known bool // the transport is ours

	mu      sync.Mutex
	asked   bool  // the transport reports to traces
	got     bool  // it has a connection for the request
	conn    *conn // that connection, nil if it is not ours
	mark    int64 // what was written on it before
	reused  bool
	fields  bool // a header field went to the connection's buffer
	unclear bool // an earlier connection may have carried the request
}

func (t *tracker) context(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.got && !t.unwrittenLocked() {
				t.unclear = true
			}
			t.asked, t.got, t.conn, t.reused, t.fields = true, false, nil, false, false
		},
		GotConn: func(info httptrace.GotConnInfo) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.got, t.reused, t.conn = true, info.Reused, counted(info.Conn)
			if t.conn != nil {
				t.mark = t.conn.count()
			}
		},
		WroteHeaderField: func(string, []string) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.fields = true
		},
	})
}

// unwritten reports whether it is proven that no byte of the request has left
// and none will. It is called once the request has failed: it seals the
// connection. reused says that the connection had served before.
func (t *tracker) unwritten() (proven, reused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unwrittenLocked(), t.reused
}

func (t *tracker) unwrittenLocked() bool {
	switch {
	case t.unclear:
		return false
	case !t.got:
		return t.asked || t.known
	case t.conn == nil:
		return false
	}
	untouched := t.conn.seal(t.mark)
	// Without a header field what was written is not the request but the
	// farewell of TLS.
	return untouched || !t.fields
}

package httpeffect_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncefence/oncefence/effect/httpeffect"
)

// dropSecond answers the first request of the first connection and drops that
// connection once it has read the second.
func dropSecond(conn, request int) (string, bool) {
	if conn == 1 && request == 2 {
		return "", false
	}
	return ok204, true
}

// net/http by itself sends such a request twice. If it ever stops, the tests
// below prove nothing any more and this one says so.
func TestNetHTTPRepeatsRequestsWithAnIdempotencyKey(t *testing.T) {
	s := newRawServer(t, listen(t), dropSecond)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	plain := &http.Client{Transport: transport}
	for _, name := range []string{"warm-up", "twice"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.l.Addr().String(), strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = named(name)
		req.Header.Set("Idempotency-Key", effectID)
		resp, err := plain.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if n := s.count("twice"); n != 2 {
		t.Errorf("net/http sent the request %d times, this suite expects 2", n)
	}
}

func TestARequestLeavesOnce(t *testing.T) {
	requests := []httpeffect.Request{
		{Method: "POST", Body: []byte("body")},
		{Method: "POST"},
		{Method: "PUT", Body: []byte("body")},
		{Method: "PATCH"},
		{Method: "DELETE"},
		{Method: "GET"},
		{Method: "HEAD"},
		{Method: "OPTIONS"},
	}
	transports := map[string]func() http.RoundTripper{
		"counted": func() http.RoundTripper { return nil },
		"plain":   func() http.RoundTripper { return &http.Transport{} },
	}
	for name, transport := range transports {
		for _, r := range requests {
			t.Run(name+" "+r.Method+" "+string(r.Body), func(t *testing.T) {
				s := newRawServer(t, listen(t), dropSecond)
				c := newClient(t, &httpeffect.Options{Transport: transport()})
				r.URL = "http://" + s.l.Addr().String()
				r.Header = named("warm-up")
				r.Header.Set("X-Idempotency-Key", "mine")
				if _, err := c.Do(t.Context(), in, r); err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-Test", "once")
				_, err := c.Do(t.Context(), in, r)
				checkMayHaveArrived(t, err)
				if n := s.count("once"); n != 1 {
					t.Errorf("the request arrived %d times", n)
				}
				if s.count("warm-up") != 1 || s.conns != 1 {
					t.Errorf("the connection was not reused: %d connections", s.conns)
				}
			})
		}
	}
}

func TestARequestLeavesOnceOverTLS(t *testing.T) {
	plain := httptest.NewUnstartedServer(nil)
	plain.StartTLS() // for its certificate
	defer plain.Close()
	l := tls.NewListener(listen(t), &tls.Config{Certificates: plain.TLS.Certificates})
	s := newRawServer(t, l, dropSecond)
	base, _ := plain.Client().Transport.(*http.Transport)
	c := newClient(t, &httpeffect.Options{Transport: httpeffect.NewTransport(base)})
	r := httpeffect.Request{URL: "https://" + l.Addr().String(), Header: named("warm-up"), Body: []byte("body")}
	if _, err := c.Do(t.Context(), in, r); err != nil {
		t.Fatal(err)
	}
	r.Header = named("once")
	_, err := c.Do(t.Context(), in, r)
	checkMayHaveArrived(t, err)
	if n := s.count("once"); n != 1 || s.conns != 1 {
		t.Errorf("the request arrived %d times on %d connections", n, s.conns)
	}
}

// deafConn does not notice that its peer is gone until it is written to: the
// race in which a server closes an idle connection just as it is used.
type deafConn struct {
	net.Conn
	dead *atomic.Bool
}

func (c deafConn) Write(p []byte) (int, error) {
	if c.dead.Load() {
		return 0, errors.New("broken pipe")
	}
	return c.Conn.Write(p)
}

func TestADeadKeptConnectionIsReplaced(t *testing.T) {
	s := newRawServer(t, listen(t), func(int, int) (string, bool) { return ok204, true })
	var dials int
	dead := &atomic.Bool{}
	base := dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if dials++; dials == 1 && err == nil {
			return deafConn{Conn: c, dead: dead}, nil
		}
		return c, err
	})
	c := newClient(t, &httpeffect.Options{Transport: httpeffect.NewTransport(base)})
	r := httpeffect.Request{URL: "http://" + s.l.Addr().String(), Header: named("warm-up"), Body: []byte("body")}
	if _, err := c.Do(t.Context(), in, r); err != nil {
		t.Fatal(err)
	}
	dead.Store(true)
	r.Header = named("second")
	if _, err := c.Do(t.Context(), in, r); err != nil {
		t.Errorf("a dead kept connection: %v, want another one to be used", err)
	}
	if n := s.count("second"); n != 1 || dials != 2 {
		t.Errorf("the request arrived %d times over %d connections", n, dials)
	}
}

// A fresh connection that dies at once is not tried again: that is for the
// retry schedule.
func TestADeadFreshConnectionIsTemporary(t *testing.T) {
	dead := &atomic.Bool{}
	dead.Store(true)
	var dials atomic.Int32
	l := listen(t)
	defer l.Close()
	base := dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return deafConn{Conn: c, dead: dead}, nil
	})
	c := newClient(t, &httpeffect.Options{Transport: httpeffect.NewTransport(base)})
	_, err := c.Do(t.Context(), in, httpeffect.Request{URL: "http://" + l.Addr().String(), Body: []byte("body")})
	checkNeverLeft(t, err)
	if dials.Load() != 1 {
		t.Errorf("%d connections, want 1", dials.Load())
	}
}

func TestNewTransportSpeaksHTTP1Only(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()

	base, _ := s.Client().Transport.(*http.Transport)
	resp, err := s.Client().Get(s.URL) // base has set itself up for HTTP/2
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Fatalf("the base speaks %s, want HTTP/2 for this test", resp.Proto)
	}

	c := newClient(t, &httpeffect.Options{Transport: httpeffect.NewTransport(base)})
	got, err := c.Do(t.Context(), in, httpeffect.Request{URL: s.URL})
	if err != nil || string(got.Body) != "HTTP/1.1" {
		t.Errorf("the sink saw %q, %v; want HTTP/1.1", got.Body, err)
	}
}

func TestNewTransportKeepsTheOldDialer(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	dialed := false
	base := &http.Transport{Dial: func(network, addr string) (net.Conn, error) { //nolint:staticcheck // the point
		dialed = true
		return net.Dial(network, addr)
	}}
	c := newClient(t, &httpeffect.Options{Transport: httpeffect.NewTransport(base)})
	if _, err := c.Do(t.Context(), in, httpeffect.Request{URL: s.URL}); err != nil || !dialed {
		t.Errorf("dialed by Dial: %v, error %v", dialed, err)
	}
}

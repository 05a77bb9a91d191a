package httpeffect

import (
	"context"
	"net"
	"net/http"
)

// NewTransport returns a transport that knows whether a byte of a request has
// left: base, copied, with HTTP/1.1 only and with its connections counted. nil
// is http.DefaultTransport. It keeps its own pool of connections, so make one
// and share it.
//
// Connections that base makes by its own DialTLSContext are not counted: what
// fails on them after they were made is unknown.
func NewTransport(base *http.Transport) http.RoundTripper {
	if base == nil {
		if d, ok := http.DefaultTransport.(*http.Transport); ok {
			base = d
		} else {
			base = &http.Transport{Proxy: http.ProxyFromEnvironment}
		}
	}
	t := base.Clone()
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = nil
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	if t.TLSClientConfig != nil && len(t.TLSClientConfig.NextProtos) > 0 {
		t.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	dial := dialerOf(t)
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c}, nil
	}
	return &counting{t}
}

func dialerOf(t *http.Transport) func(ctx context.Context, network, addr string) (net.Conn, error) {
	if t.DialContext != nil {
		return t.DialContext
	}
	if old := t.Dial; old != nil { //nolint:staticcheck // a base that still sets it keeps its dialer
		return func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	}
	return new(net.Dialer).DialContext
}

// counting marks the transports of NewTransport. Nobody else can reach the
// *http.Transport, so it is known to ask a trace before it does anything.
type counting struct{ t *http.Transport }

func (c *counting) RoundTrip(req *http.Request) (*http.Response, error) { return c.t.RoundTrip(req) }

func (c *counting) CloseIdleConnections() { c.t.CloseIdleConnections() }

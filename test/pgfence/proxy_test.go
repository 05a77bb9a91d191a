package pgfence_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// proxy stands between a pool and the server, reads the client's messages, and
// cuts connections at the COMMIT of an effect's transaction.
type proxy struct {
	listener net.Listener
	server   string
	cut      func(commit []byte, client, server net.Conn) // nil: none
	commits  atomic.Int64
	cuts     atomic.Int64
	every    int64                          // of the commits is cut
	claims   *atomic.Pointer[chan struct{}] // what a commit without effects waits for; nil: nothing
	open     sync.WaitGroup
}

// newProxy starts a proxy before the pool's server.
func newProxy(t *testing.T, pool *pgxpool.Pool, every int64, cut func(commit []byte, client, server net.Conn)) *proxy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := pool.Config().ConnConfig
	p := &proxy{listener: listener, server: net.JoinHostPort(config.Host, itoa(int(config.Port))), cut: cut, every: every}
	p.open.Go(p.serve)
	t.Cleanup(func() {
		_ = listener.Close()
		p.open.Wait()
	})
	return p
}

// through makes a pool's connections go through the proxy.
func (p *proxy) through(c *pgxpool.Config) {
	addr := p.listener.Addr().(*net.TCPAddr) //nolint:errcheck // it listens on TCP
	c.ConnConfig.Host, c.ConnConfig.Port = "127.0.0.1", uint16(addr.Port)
	c.ConnConfig.Fallbacks = nil
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // statements travel as text
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server) //nolint:noctx // ends with its peer
		if err != nil {
			_ = client.Close()
			continue
		}
		p.open.Go(func() {
			_, _ = io.Copy(client, server)
			_ = client.Close()
		})
		p.open.Go(func() {
			p.forward(client, server)
			_ = server.Close()
			_ = client.Close()
		})
	}
}

// forward hands the client's messages on until the connection ends or is cut.
func (p *proxy) forward(client, server net.Conn) {
	head := make([]byte, 5)
	effects := false // it is a transaction with effects
	for first := true; ; first = false {
		prefix := head // type and length
		if first {
			prefix = head[1:] // the first message has no type
		}
		if _, err := io.ReadFull(client, prefix); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		message := append(bytes.Clone(prefix), body...)
		effects = effects || bytes.Contains(body, []byte("SAVEPOINT oncefence"))
		if !first && effects && commits(head[0], body) {
			effects = false
			if n := p.commits.Add(1); n%p.every == 0 {
				rest, err := untilSync(client, head[0])
				if err != nil {
					return
				}
				p.cuts.Add(1)
				p.cut(append(message, rest...), client, server)
				return
			}
		}
		if !first && p.claims != nil && commits(head[0], body) {
			if late := p.claims.Load(); late != nil {
				<-*late
			}
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// commits reports whether a message is a COMMIT, as a query or as a statement
// that is parsed.
func commits(kind byte, body []byte) bool {
	switch kind {
	case 'Q':
		return bytes.EqualFold(body, []byte("commit\x00"))
	case 'P':
		return bytes.HasPrefix(body, []byte("\x00COMMIT\x00"))
	}
	return false
}

// untilSync reads what belongs to a COMMIT that is parsed: binding it, executing
// it, and the end of the pipeline.
func untilSync(client net.Conn, kind byte) (rest []byte, err error) {
	head := make([]byte, 5)
	for kind != 'Q' && kind != 'S' {
		if _, err := io.ReadFull(client, head); err != nil {
			return nil, err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return nil, err
		}
		kind, rest = head[0], append(append(rest, head...), body...)
	}
	return rest, nil
}

// The ways to cut a connection at its COMMIT.
var cuts = map[string]func(commit []byte, client, server net.Conn){
	"the commit is lost": func(_ []byte, client, server net.Conn) {
		_ = client.Close()
		_ = server.Close()
	},
	"the answer is lost": func(commit []byte, client, server net.Conn) {
		_ = client.Close()
		_, _ = server.Write(commit)
		_, _ = io.Copy(io.Discard, timed(server, 200*time.Millisecond))
	},
	"it is cut while the server commits": func(commit []byte, client, server net.Conn) {
		_, _ = server.Write(commit)
		_ = client.Close()
		_ = server.Close()
	},
	"the commit arrives late": func(commit []byte, client, server net.Conn) {
		_ = client.Close()
		_, _ = io.Copy(io.Discard, timed(server, 300*time.Millisecond)) // the client asks meanwhile
		_, _ = server.Write(commit)
		_, _ = io.Copy(io.Discard, timed(server, 200*time.Millisecond))
	},
	"the commit is lost and the server notices late": func(_ []byte, client, server net.Conn) {
		_ = client.Close()
		_, _ = io.Copy(io.Discard, timed(server, 300*time.Millisecond))
	},
}

// timed is a connection that reads until a time.
func timed(c net.Conn, d time.Duration) io.Reader {
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil && !errors.Is(err, net.ErrClosed) {
		panic(err)
	}
	return c
}

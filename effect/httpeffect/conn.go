package httpeffect

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
)

// conn counts what was written and can be sealed: after that nothing more can
// leave, so a count that has not grown is a proof and not a glimpse.
type conn struct {
	net.Conn

	mu      sync.Mutex
	written int64
	writing int
	sealed  bool
}

var errSealed = errors.New("the request on this connection was given up")

func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.sealed {
		c.mu.Unlock()
		return 0, errSealed
	}
	c.writing++
	c.mu.Unlock()

	n, err := c.Conn.Write(p)

	c.mu.Lock()
	c.writing--
	c.written += int64(n)
	c.mu.Unlock()
	return n, err
}

func (c *conn) count() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written
}

// seal lets nothing more be written, and reports whether nothing was written
// since the count was mark.
func (c *conn) seal(mark int64) bool {
	c.mu.Lock()
	c.sealed = true
	idle := c.writing == 0 && c.written == mark
	c.mu.Unlock()
	_ = c.Close() // the request has failed already; a second Close is fine
	return idle
}

// counted finds our conn below a connection that net/http hands to a trace,
// nil if it is not ours.
func counted(c net.Conn) *conn {
	for {
		switch v := c.(type) {
		case *conn:
			return v
		case *tls.Conn:
			c = v.NetConn()
		default:
			return nil
		}
	}
}

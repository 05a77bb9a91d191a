package httpeffect

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
)

// sinkConn takes what is written; step, if set, is called inside Write.
type sinkConn struct {
	net.Conn
	step   func()
	short  bool
	closed bool
}

func (c *sinkConn) Write(p []byte) (int, error) {
	if c.step != nil {
		c.step()
	}
	if c.short {
		return len(p) / 2, errors.New("broken pipe")
	}
	return len(p), nil
}

func (c *sinkConn) Close() error { c.closed = true; return nil }

func TestSealProvesThatNothingWasWritten(t *testing.T) {
	inner := &sinkConn{}
	c := &conn{Conn: inner}
	if _, err := c.Write([]byte("an earlier request")); err != nil {
		t.Fatal(err)
	}
	mark := c.count()
	if mark != 18 {
		t.Fatalf("count %d, want 18", mark)
	}
	if !c.seal(mark) {
		t.Error("nothing was written since the mark, but seal does not say so")
	}
	if n, err := c.Write([]byte("late")); n != 0 || !errors.Is(err, errSealed) || c.count() != mark {
		t.Errorf("a write after the seal: %d, %v; want it refused", n, err)
	}
	if !inner.closed {
		t.Error("a sealed connection stays open")
	}
}

func TestSealAfterAWrite(t *testing.T) {
	for _, short := range []bool{false, true} {
		c := &conn{Conn: &sinkConn{short: short}}
		_, _ = c.Write([]byte("request"))
		if c.seal(0) {
			t.Errorf("short write %v: seal says that nothing was written", short)
		}
	}
}

func TestSealDuringAWrite(t *testing.T) {
	var proven bool
	inner := &sinkConn{}
	c := &conn{Conn: inner}
	inner.step = func() { proven = c.seal(0) }
	_, _ = c.Write([]byte("request"))
	if proven {
		t.Error("seal says that nothing was written while a write was under way")
	}
}

func TestCountedLooksThroughTLS(t *testing.T) {
	c := &conn{Conn: &sinkConn{}}
	overTLS := tls.Client(c, &tls.Config{ServerName: "sink"}) //nolint:gosec // never shakes hands
	twice := tls.Client(overTLS, &tls.Config{ServerName: "sink"})
	for name, v := range map[string]net.Conn{"bare": c, "TLS": overTLS, "TLS in TLS": twice} {
		if counted(v) != c {
			t.Errorf("%s: not found", name)
		}
	}
	for name, v := range map[string]net.Conn{"none": nil, "foreign": &sinkConn{}} {
		if counted(v) != nil {
			t.Errorf("%s: found one", name)
		}
	}
}

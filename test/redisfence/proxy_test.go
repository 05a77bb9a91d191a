package redisfence_test

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// proxy stands between a client and a server and does to replies what a
// network may do. A request is a write of the client that runs a script; what
// else the client says goes through untouched.
type proxy struct {
	listener net.Listener
	target   string

	mu       sync.Mutex
	conns    []net.Conn
	requests int           // scripts that reached the proxy
	lose     int           // this many replies are lost: the connection ends instead
	refuse   string        // not empty: the answer in the server's place
	delay    time.Duration // before each reply
}

func startProxy(tb testing.TB, target string) *proxy {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{listener: l, target: target}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.serve(client) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		wg.Wait()
	})
	return p
}

// client connects through the proxy.
func (p *proxy) client(tb testing.TB, change func(*redis.Options)) *redis.Client {
	tb.Helper()
	opts := &redis.Options{Addr: p.listener.Addr().String(), DialTimeout: time.Second, ReadTimeout: 10 * time.Second}
	if change != nil {
		change(opts)
	}
	client := redis.NewClient(opts)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

func (p *proxy) set(change func(*proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *proxy) seen() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.set(func(p *proxy) { p.conns = append(p.conns, client, server) })
	scripts := make(chan struct{}, 1024) // scripts on their way to the server
	go p.back(server, client, scripts)
	defer server.Close()
	defer client.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if begins := bytes.Count(buf[:n], []byte("\r\nevalsha\r\n")) + bytes.Count(buf[:n], []byte("\r\neval\r\n")); begins > 0 {
			var refuse string
			p.set(func(p *proxy) { p.requests += begins; refuse = p.refuse })
			if refuse != "" {
				// The rest of a long request is not waited for: the connection ends.
				if _, err := client.Write([]byte(strings.Repeat("-"+refuse+"\r\n", begins))); err != nil {
					return
				}
				continue
			}
			for range begins {
				scripts <- struct{}{}
			}
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// back carries replies, but for those that are to be lost.
func (p *proxy) back(server, client net.Conn, scripts chan struct{}) {
	defer server.Close()
	defer client.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		select {
		case <-scripts:
			var lost bool
			var delay time.Duration
			p.set(func(p *proxy) {
				if lost = p.lose > 0; lost {
					p.lose--
				}
				delay = p.delay
			})
			if lost {
				return
			}
			if delay > 0 {
				<-time.After(delay)
			}
		default:
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

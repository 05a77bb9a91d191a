package chaos

import (
	"net"
	"sync"
	"time"
)

// proxy stands between the members and Redis and does what a network may do.
type proxy struct {
	listener net.Listener

	mu     sync.Mutex
	target string
	conns  map[net.Conn]net.Conn // client's to server's
	delay  time.Duration         // before each piece, either way
	eat    int                   // this many replies are lost, and their connections end
	eaten  int
	silent bool // nothing goes through, nothing ends
	freed  *sync.Cond
	wg     sync.WaitGroup
}

func startProxy(target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lives until close
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, conns: make(map[net.Conn]net.Conn)}
	p.freed = sync.NewCond(&p.mu)
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(client) })
		}
	})
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	_ = p.listener.Close()
	p.heal()
	p.drop()
	p.wg.Wait()
}

func (p *proxy) serve(client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", target, time.Second)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns[client] = server
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.carry(server, client, false) })
	both.Go(func() { p.carry(client, server, true) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, client)
	p.mu.Unlock()
	_, _ = client.Close(), server.Close()
}

// carry takes pieces from one side to the other until either ends; a piece that
// is a reply may be eaten.
func (p *proxy) carry(to, from net.Conn, reply bool) {
	defer func() { _ = to.(*net.TCPConn).CloseWrite() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if p.hold(reply) {
				_, _ = to.Close(), from.Close()
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold waits as long as a piece must and reports whether it is lost.
func (p *proxy) hold(reply bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.delay > 0 {
		d := p.delay
		p.mu.Unlock()
		<-time.After(d)
		p.mu.Lock()
	}
	for p.silent {
		p.freed.Wait()
	}
	if reply && p.eat > 0 {
		p.eat--
		p.eaten++
		return true
	}
	return false
}

func (p *proxy) set(change func(*proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
	p.freed.Broadcast()
}

// heal ends what slows or loses.
func (p *proxy) heal() { p.set(func(p *proxy) { p.delay, p.eat, p.silent = 0, 0, false }) }

// drop ends all connections at once.
func (p *proxy) drop() {
	p.set(func(p *proxy) {
		for client, server := range p.conns {
			_, _ = client.Close(), server.Close()
		}
	})
}

// halfClose ends one direction of all connections: the server sees the client
// go, the client may still read.
func (p *proxy) halfClose() {
	p.set(func(p *proxy) {
		for _, server := range p.conns {
			_ = server.(*net.TCPConn).CloseWrite()
		}
	})
}

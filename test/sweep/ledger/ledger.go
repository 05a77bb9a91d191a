// Package ledger is a sink outside the consumers' processes: it survives them,
// books what it is asked to, misbehaves as each request says, and is what tests
// count effects in.
package ledger

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options say what the sink offers, as the kinds of effect need it.
type Options struct {
	// Dedupes: a second request with an effect id books nothing and gets the
	// first one's receipt.
	Dedupes bool
	// Answers: the sink can be asked what became of an effect id.
	Answers bool
	// Compares: a request or question with a fencing token below the highest
	// seen for its effect id is refused.
	Compares bool
}

// The words of Request.Do: what the sink does with a request.
const (
	Book   = "book"   // book and answer
	Refuse = "refuse" // 503, nothing booked: the sink documents it as not applied
	Never  = "never"  // 422, nothing booked
	Drop   = "drop"   // book, then cut the connection
	Lose   = "lose"   // cut the connection, nothing booked
	Late   = "late"   // book, and answer later than the client waits
	Slow   = "slow"   // book after SlowFor, then answer
)

const (
	// SlowFor is longer than a lease of 250 ms, so that renewal has to work.
	SlowFor = 350 * time.Millisecond
	// ClientWaits is how long a client waits for an answer.
	ClientWaits = 600 * time.Millisecond
	lateBy      = 750 * time.Millisecond
	usual       = 2 * time.Millisecond
)

// Request is one order to book.
type Request struct {
	EffectID string   `json:"effect_id"`
	Order    string   `json:"order"`
	Token    uint64   `json:"token"`
	Do       []string `json:"do"` // by number of the request for this effect id; the last word stays
}

// entry is what the sink knows of one effect id.
type entry struct {
	requests int
	booked   int
	token    uint64
}

// Ledger is the sink. Its methods may be called at any time.
type Ledger struct {
	// URL is where the sink listens.
	URL    string
	opts   Options
	server *http.Server

	mu      sync.Mutex
	effects map[string]*entry
	orders  map[string]int // bookings
	stats   Stats
}

// Stats counts what the sink has seen.
type Stats struct {
	Requests int // to book
	Bookings int
	Asked    int // what became of an effect id
	Stale    int // requests with a token below one seen before
	Refused  int // of these, refused
}

// Start opens a sink on a free loopback port.
func Start(o Options) (*Ledger, error) {
	l := &Ledger{opts: o, effects: make(map[string]*entry), orders: make(map[string]int)}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lives until Close
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l.URL = "http://" + listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /book", l.serveBook)
	mux.HandleFunc("GET /book", l.serveFind)
	l.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := l.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // the figures would be wrong
		}
	}()
	return l, nil
}

// Close ends the sink at once.
func (l *Ledger) Close() error { return l.server.Close() }

// Booked returns how often an order was booked.
func (l *Ledger) Booked(order string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.orders[order]
}

// Twice returns the orders that were booked more than once.
func (l *Ledger) Twice() (orders []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for order, n := range l.orders {
		if n > 1 {
			orders = append(orders, order)
		}
	}
	return orders
}

// Stats returns what the sink has seen so far.
func (l *Ledger) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// chargeRequest is what the provider is asked to book. It books any signed
// amount; a negative one is a refund.
type chargeRequest struct {
	EffectID    string `json:"effect_id"`
	OrderID     string `json:"order_id"`
	AmountCents int64  `json:"amount_cents"`
}

// booking is one line of the provider's ledger.
type booking struct {
	ID          string `json:"charge_id"`
	EffectID    string `json:"-"`
	OrderID     string `json:"order_id"`
	AmountCents int64  `json:"amount_cents"`
}

// provider is a payment provider with a ledger. It lives in the parent process,
// so it survives the consumers, and it misbehaves on purpose: a part of the
// requests gets a 503 before booking, an answer later than the client waits, or
// a connection that is dropped after booking.
type provider struct {
	dedupes bool // by effect id
	answers bool // what it did for an effect id
	faults  float64
	server  *http.Server
	URL     string

	mu       sync.Mutex
	random   *rand.Rand
	ledger   []booking
	byEffect map[string]int // place in ledger
	orders   map[string]bool
	cents    int64
	doubles  int // bookings beyond the first of an order
}

func startProvider(kind string, faultPercent float64) (*provider, error) {
	p := &provider{
		dedupes: kind == "idempotent", answers: kind == "probed", faults: faultPercent / 100,
		random: rand.New(rand.NewPCG(1, 2)), byEffect: make(map[string]int), orders: make(map[string]bool),
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("payment provider: %w", err)
	}
	p.URL = "http://" + listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", p.charge)
	mux.HandleFunc("GET /charges", p.find)
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.server.Serve(listener) }() // ends with Close
	return p, nil
}

func (p *provider) Close() { _ = p.server.Close() }

// fault draws what goes wrong with a request: "", "refuse", "late" or "drop".
func (p *provider) fault() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.random.Float64() >= p.faults {
		return ""
	}
	return []string{"refuse", "late", "drop"}[p.random.IntN(3)]
}

func (p *provider) charge(w http.ResponseWriter, r *http.Request) {
	var c chargeRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fault := p.fault()
	if fault == "refuse" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	booked := p.book(c)
	switch fault {
	case "late":
		select {
		case <-time.After(2 * clientWaits):
		case <-r.Context().Done():
			return
		}
	case "drop":
		panic(http.ErrAbortHandler)
	}
	writeJSON(w, booked)
}

func (p *provider) book(c chargeRequest) booking {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i, known := p.byEffect[c.EffectID]; known && p.dedupes {
		return p.ledger[i]
	}
	p.byEffect[c.EffectID] = len(p.ledger)
	p.ledger = append(p.ledger, booking{ID: fmt.Sprintf("ch_%08d", len(p.ledger)+1), EffectID: c.EffectID, OrderID: c.OrderID, AmountCents: c.AmountCents})
	p.cents += c.AmountCents
	if p.orders[c.OrderID] {
		p.doubles++
	}
	p.orders[c.OrderID] = true
	return p.ledger[len(p.ledger)-1]
}

func (p *provider) find(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	i, known := p.byEffect[r.URL.Query().Get("effect_id")]
	var found booking
	if known {
		found = p.ledger[i]
	}
	p.mu.Unlock()
	switch {
	case !p.answers:
		http.Error(w, "this provider does not answer that", http.StatusNotImplemented)
	case !known:
		w.WriteHeader(http.StatusNotFound)
	default:
		writeJSON(w, found)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client has gone, or it has not
}

// books sums the ledger up.
func (p *provider) books() (charges int, cents int64, doubles int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ledger), p.cents, p.doubles
}

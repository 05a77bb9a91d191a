package ledger

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

func (l *Ledger) serveBook(w http.ResponseWriter, r *http.Request) {
	var q Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	do, stale := l.arrived(q)
	if stale {
		http.Error(w, "the token is below one seen before", http.StatusConflict)
		return
	}
	switch do {
	case Refuse:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case Never:
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	case Lose:
		panic(http.ErrAbortHandler)
	case Slow: // a client that has gone changes nothing: the request lands late
		<-time.After(SlowFor)
	default:
		<-time.After(usual)
	}
	if !l.book(q) {
		http.Error(w, "the token is below one seen before", http.StatusConflict)
		return
	}
	switch do {
	case Drop:
		panic(http.ErrAbortHandler)
	case Late:
		select {
		case <-time.After(lateBy):
		case <-r.Context().Done():
			return
		}
	}
	writeJSON(w, map[string]string{"id": "booked-" + q.EffectID})
}

// arrived counts a request and says what to do with it.
func (l *Ledger) arrived(q Request) (do string, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Requests++
	e := l.effects[q.EffectID]
	if e == nil {
		e = &entry{}
		l.effects[q.EffectID] = e
	}
	if l.stale(e, q.Token) {
		return "", true
	}
	do = Book
	if len(q.Do) > 0 {
		do = q.Do[min(e.requests, len(q.Do)-1)]
	}
	e.requests++
	return do, false
}

// stale notes the token and reports whether it is refused.
func (l *Ledger) stale(e *entry, token uint64) bool {
	if token >= e.token {
		e.token = token
		return false
	}
	l.stats.Stale++
	if l.opts.Compares {
		l.stats.Refused++
	}
	return l.opts.Compares
}

// book writes the booking, and reports false if the token is refused by now.
func (l *Ledger) book(q Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.effects[q.EffectID]
	if l.opts.Compares && q.Token < e.token {
		l.stats.Stale++
		l.stats.Refused++
		return false
	}
	if l.opts.Dedupes && e.booked > 0 {
		return true
	}
	e.booked++
	l.orders[q.Order]++
	l.stats.Bookings++
	return true
}

func (l *Ledger) serveFind(w http.ResponseWriter, r *http.Request) {
	if !l.opts.Answers {
		http.Error(w, "this sink does not answer that", http.StatusNotImplemented)
		return
	}
	id := r.URL.Query().Get("effect_id")
	token, err := strconv.ParseUint(r.URL.Query().Get("token"), 10, 64)
	if err != nil {
		http.Error(w, "token: "+err.Error(), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	l.stats.Asked++
	e := l.effects[id]
	if e == nil {
		e = &entry{}
		l.effects[id] = e
	}
	booked := e.booked
	refused := l.stale(e, token)
	l.mu.Unlock()
	switch {
	case refused:
		http.Error(w, "the token is below one seen before", http.StatusConflict)
	case booked == 0:
		w.WriteHeader(http.StatusNotFound)
	default:
		writeJSON(w, map[string]string{"id": "booked-" + id})
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client has gone, or it has not
}

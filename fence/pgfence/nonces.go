package pgfence

import (
	"sync"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// nonces are those of claims whose answer never came. The server may still be at
// work on them: a claim that is sent again and refused its lock is then perhaps
// held by itself, and must not be told that another one holds the key.
type nonces struct {
	mu    sync.Mutex
	since map[driver.Nonce]time.Time
}

func (n *nonces) add(claims []driver.Claim) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if n.since == nil {
		n.since = make(map[driver.Nonce]time.Time)
	}
	for nonce, at := range n.since { // given up, and nobody asks again
		if now.Sub(at) > driver.TombstoneLife {
			delete(n.since, nonce)
		}
	}
	for i := range claims {
		n.since[claims[i].Nonce] = now
	}
}

func (n *nonces) has(nonce driver.Nonce) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, found := n.since[nonce]
	return found
}

// remove forgets those that were answered.
func (n *nonces) remove(claims []driver.Claim, out []driver.Claimed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.since) == 0 {
		return
	}
	for i := range claims {
		if out[i].Err == nil {
			delete(n.since, claims[i].Nonce)
		}
	}
}

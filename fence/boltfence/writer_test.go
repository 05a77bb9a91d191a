package boltfence

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncefence/oncefence/fence/driver"
)

func openInternal(t *testing.T) *Store {
	t.Helper()
	store, err := OpenStore(filepath.Join(t.TempDir(), "fence.bolt"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func ask(name string, n int) []driver.Claim {
	out := make([]driver.Claim, n)
	for i := range out {
		out[i] = driver.Claim{Key: sha256.Sum256(fmt.Appendf(nil, "%s %d", name, i)), Nonce: driver.Nonce{1}, Attempt: 1, Lease: time.Hour}
		copy(out[i].Nonce[1:], name)
	}
	return out
}

func wantAll(t *testing.T, out []driver.Claimed, want driver.Answer) {
	t.Helper()
	for i := range out {
		if out[i].Err != nil || out[i].Answer != want {
			t.Fatalf("claim %d: %v, %v, want %v", i, out[i].Answer, out[i].Err, want)
		}
	}
}

// gate makes each commit wait until it is let through.
func gate(store *Store) (begun <-chan struct{}, pass chan<- struct{}) {
	begins, passes := make(chan struct{}), make(chan struct{})
	store.commitTx = func(tx *bbolt.Tx) error {
		begins <- struct{}{}
		<-passes
		return tx.Commit()
	}
	return begins, passes
}

// queued waits until n batches wait.
func queued(t *testing.T, store *Store, n int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for {
		store.mu.Lock()
		got := len(store.queue) + len(store.urgent)
		store.mu.Unlock()
		if got == n {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d batches wait, want %d", got, n)
		}
	}
}

func TestWaitingBatchesShareACommit(t *testing.T) {
	store := openInternal(t)
	begun, pass := gate(store)
	var all sync.WaitGroup
	claim := func(name string) {
		all.Go(func() { wantAll(t, store.Claim(t.Context(), "ns", ask(name, 10)), driver.New) })
	}
	claim("first")
	<-begun
	for i := range 20 {
		claim(fmt.Sprint("other ", i))
	}
	queued(t, store, 20)
	pass <- struct{}{}
	<-begun
	pass <- struct{}{}
	all.Wait() // a third commit would wait at the gate for ever
}

func TestRenewalsGoFirst(t *testing.T) {
	store := openInternal(t)
	held := store.Claim(t.Context(), "ns", ask("held", 1))
	begun, pass := gate(store)
	done := make(chan string, 10)
	claim := func(name string, n int) {
		go func() {
			store.Claim(t.Context(), "ns", ask(name, n))
			done <- name
		}()
	}
	claim("running", 1)
	<-begun
	claim("large", maxItems-10)
	queued(t, store, 1)
	claim("larger", maxItems)
	queued(t, store, 2)
	go func() {
		renew := driver.Transition{Op: driver.Renew, Key: ask("held", 1)[0].Key, Token: held[0].Record.Token, Lease: time.Hour}
		if out := store.Apply(t.Context(), "ns", []driver.Transition{renew}); out[0].Outcome != driver.OK {
			t.Errorf("renew: %v, %v", out[0].Outcome, out[0].Err)
		}
		done <- "renew"
	}()
	queued(t, store, 3)
	pass <- struct{}{}
	<-begun // the second commit
	if name := <-done; name != "running" {
		t.Errorf("%s was done first", name)
	}
	pass <- struct{}{}
	<-begun
	second := map[string]bool{<-done: true, <-done: true}
	if !second["renew"] || !second["large"] {
		t.Errorf("the second commit had %v, want the renewal and what fits beside it", second)
	}
	pass <- struct{}{}
	if name := <-done; name != "larger" {
		t.Errorf("%s was done last", name)
	}
}

func TestContextEndsWhileWaiting(t *testing.T) {
	store := openInternal(t)
	begun, pass := gate(store)
	first := make(chan []driver.Claimed)
	running, stop := context.WithCancel(t.Context())
	go func() { first <- store.Claim(running, "ns", ask("first", 1)) }()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan []driver.Claimed)
	go func() { second <- store.Claim(ctx, "ns", ask("second", 2)) }()
	queued(t, store, 1)
	cancel()
	for i, c := range <-second {
		if !errors.Is(c.Err, context.Canceled) {
			t.Errorf("claim %d: %v, %v", i, c.Answer, c.Err)
		}
	}
	stop() // its transaction has begun: the answer is waited for
	pass <- struct{}{}
	wantAll(t, <-first, driver.New)
	store.Close()
	if store, err := OpenStore(store.path, nil); err != nil {
		t.Error(err)
	} else {
		wantAll(t, store.Claim(t.Context(), "ns", ask("second", 2)), driver.New)
		wantAll(t, store.Claim(t.Context(), "ns", ask("first", 1)), driver.New) // the same nonce
		store.Close()
	}
}

func TestNothingChangedIsNoCommit(t *testing.T) {
	store := openInternal(t)
	wantAll(t, store.Claim(t.Context(), "ns", ask("a", 3)), driver.New)
	store.commitTx = func(*bbolt.Tx) error { return errors.New("nothing was to be written") }
	other := ask("a", 3)
	for i := range other {
		other[i].Nonce[0]++
	}
	wantAll(t, store.Claim(t.Context(), "ns", other), driver.Held)
	wantAll(t, store.Claim(t.Context(), "ns", ask("a", 3)), driver.New)
	if n, err := store.Purge(t.Context(), "ns", 10); n != 0 || err != nil {
		t.Errorf("purge: %d, %v", n, err)
	}
}

func TestCloseWaitsForBatches(t *testing.T) {
	store := openInternal(t)
	begun, pass := gate(store)
	first, second := make(chan []driver.Claimed, 1), make(chan []driver.Claimed, 1)
	go func() { first <- store.Claim(t.Context(), "ns", ask("first", 1)) }()
	<-begun
	go func() { second <- store.Claim(t.Context(), "ns", ask("second", 1)) }()
	queued(t, store, 1)
	closed := make(chan error)
	go func() { closed <- store.Close() }()
	pass <- struct{}{}
	<-begun
	pass <- struct{}{}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	wantAll(t, <-first, driver.New)
	wantAll(t, <-second, driver.New)
	if out := store.Claim(t.Context(), "ns", ask("third", 1)); !errors.Is(out[0].Err, driver.ErrClosed) {
		t.Errorf("after close: %v", out[0].Err)
	}
}

// A transaction whose last write was done may be on disk or not: the store
// answers nothing more.
func TestUncertainCommitStopsTheStore(t *testing.T) {
	store := openInternal(t)
	wantAll(t, store.Claim(t.Context(), "ns", ask("a", 3)), driver.New)
	cause := errors.New("fsync: input/output error")
	store.commitTx = func(tx *bbolt.Tx) error { return errors.Join(tx.Commit(), cause) }
	for _, name := range []string{"b", "c"} {
		for i, c := range store.Claim(t.Context(), "ns", ask(name, 3)) {
			if !errors.Is(c.Err, cause) || !strings.Contains(c.Err.Error(), "opened anew") || !strings.Contains(c.Err.Error(), store.path) {
				t.Errorf("claim %s %d: %v, %v", name, i, c.Answer, c.Err)
			}
		}
	}
	store.commitTx = (*bbolt.Tx).Commit
	if _, err := store.Get(t.Context(), "ns", nil); !errors.Is(err, cause) {
		t.Errorf("get: %v", err)
	}
	if _, err := store.Marker(t.Context(), "ns", driver.Marker{}); !errors.Is(err, cause) {
		t.Errorf("marker: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// A file that cannot grow fails the whole batch; when there is room again the
// store goes on.
func TestDiskFull(t *testing.T) {
	store := openInternal(t)
	before := ask("before", 50)
	wantAll(t, store.Claim(t.Context(), "ns", before), driver.New)
	refuse := errors.New("no space left on device")
	store.commitTx = func(tx *bbolt.Tx) error { return errors.Join(tx.Rollback(), refuse) }
	for i, c := range store.Claim(t.Context(), "ns", ask("after", 50)) {
		if !errors.Is(c.Err, refuse) || !strings.Contains(c.Err.Error(), "nothing was written") {
			t.Errorf("claim %d: %v, %v", i, c.Answer, c.Err)
		}
	}
	store.commitTx = (*bbolt.Tx).Commit
	records, err := store.Get(t.Context(), "ns", []driver.Digest{ask("after", 1)[0].Key, before[0].Key})
	if err != nil || records[0].State != driver.Absent || records[1].State != driver.Pending {
		t.Errorf("after the failed batch: %v, %v, %v", records[0].State, records[1].State, err)
	}
	wantAll(t, store.Claim(t.Context(), "ns", ask("after", 50)), driver.New)
}

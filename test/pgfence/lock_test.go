package pgfence_test

import (
	"context"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/pgfence"
	"github.com/oncefence/oncefence/test/servers"
)

// during runs f while a transaction of the store holds the claims and has written
// nothing yet.
func during(t *testing.T, store *pgfence.Store, asked []driver.Claim, f func()) {
	t.Helper()
	out := store.Transact(t.Context(), ns, asked, func(driver.Tx, []driver.Claimed) ([]driver.Transition, error) {
		f()
		return nil, errStop
	})
	for i := range out {
		if err := out[i].Claimed.Err; err == nil || !strings.Contains(err.Error(), "stop") {
			t.Errorf("transact %d: %v, %v", i, out[i].Claimed.Answer, err)
		}
	}
}

func TestClaimsDoNotWaitForATransaction(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	store := open(t, pool, &pgfence.Options{Schema: schema(t, pool)})
	asked := claims(0, 5)
	rival := claims(0, 10) // five of them are free
	for i := range rival {
		rival[i].Nonce[0]++
	}
	during(t, store, asked, func() {
		start := time.Now()
		out := store.Claim(t.Context(), ns, rival)
		if err := wantAll(out[:5], driver.Held); err != nil {
			t.Error(err)
		}
		if err := wantAll(out[5:], driver.New); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
	if err := wantAll(store.Claim(t.Context(), ns, rival[:5]), driver.New); err != nil {
		t.Errorf("after the rollback: %v", err)
	}
}

// What is done, or stands for another payload, is said without waiting too.
func TestClaimsThatNeedNoLock(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	store := open(t, pool, &pgfence.Options{Schema: schema(t, pool)})
	asked := claims(0, 2)
	for i := range asked {
		asked[i].Fingerprint = driver.Fingerprint{Scheme: 1, Sum: [16]byte{1}}
	}
	held := hold(t, store, asked)
	sealing := seals(asked, held, time.Hour)
	for i := range sealing {
		sealing[i].Fingerprint = asked[i].Fingerprint
	}
	apply(t, store, sealing, driver.OK)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for i := range asked { // another session has the locks
		if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_lock($1)", lockOf(asked[i].Key)); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _, _ = conn.Exec(context.WithoutCancel(t.Context()), "SELECT pg_advisory_unlock_all()") }()
	asked[0].Nonce[0]++
	asked[1].Nonce[0]++
	asked[1].Fingerprint.Sum[0]++
	out := store.Claim(t.Context(), ns, asked)
	if out[0].Answer != driver.Duplicate || out[1].Answer != driver.Conflict {
		t.Errorf("%v, %v; %v, %v", out[0].Answer, out[0].Err, out[1].Answer, out[1].Err)
	}
}

// A row that a transaction keeps locked fails alone, its neighbours are written.
func TestTransitionsGoAroundALockedRow(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	name := schema(t, pool)
	store := open(t, pool, &pgfence.Options{Schema: name})
	asked := claims(0, 10)
	held := hold(t, store, asked)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	locked := asked[3].Key
	if _, err := tx.Exec(t.Context(), "SELECT 1 FROM "+pgx.Identifier{name, "record"}.Sanitize()+" WHERE digest = $1 FOR UPDATE", locked[:]); err != nil {
		t.Fatal(err)
	}
	all := seals(asked, held, time.Hour)
	for i, a := range store.Apply(t.Context(), ns, all) {
		switch {
		case i == 3 && (a.Err == nil || !strings.Contains(a.Err.Error(), "row locked: send it again")):
			t.Errorf("the locked one: %v, %v", a.Outcome, a.Err)
		case i != 3 && (a.Err != nil || a.Outcome != driver.OK):
			t.Errorf("seal %d: %v, %v", i, a.Outcome, a.Err)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	apply(t, store, all[3:4], driver.OK)
	apply(t, store, all, driver.Repeated)
}

// A claim whose answer was lost while the server was still at work is not told
// that somebody else holds its key when it asks again.
func TestAClaimThatIsStillUnderWay(t *testing.T) {
	pool := connect(t, servers.Postgres(t).URL())
	name := schema(t, pool)
	var server atomic.Pointer[chan struct{}]
	p := newProxy(t, pool, 1, nil)
	p.claims = &server
	store := open(t, connect(t, pool.Config().ConnString(), p.through), &pgfence.Options{Schema: name})
	hold(t, store, claims(100, 1))
	asked := claims(0, 1)
	late := make(chan struct{})
	server.Store(&late) // from now on the server gets no COMMIT
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	out := store.Claim(ctx, ns, asked)
	cancel()
	if err := out[0].Err; err == nil || !strings.Contains(err.Error(), "not known whether the batch was written") {
		t.Fatalf("%v, %v", out[0].Answer, err)
	}
	direct := open(t, pool, &pgfence.Options{Schema: name})
	if out := direct.Claim(t.Context(), ns, []driver.Claim{{Key: asked[0].Key, Nonce: driver.Nonce{1}, Kind: driver.KindIdempotent, Attempt: 1, Lease: time.Hour}}); out[0].Answer != driver.Held {
		t.Errorf("another one's claim: %v, %v", out[0].Answer, out[0].Err)
	}
	server.Store(nil)
	if out := store.Claim(t.Context(), ns, asked); out[0].Err == nil || !strings.Contains(out[0].Err.Error(), "may still be under way") {
		t.Errorf("the same claim again: %v, %v", out[0].Answer, out[0].Err)
	}
	close(late) // the COMMIT arrives
	until(t, "the claim is answered", func() bool {
		out = store.Claim(t.Context(), ns, asked)
		return out[0].Err == nil
	})
	if out[0].Answer != driver.New || out[0].Record.Nonce != asked[0].Nonce {
		t.Errorf("after the commit: %v", out[0].Answer)
	}
}

// lockOf is the advisory lock of a key in the test's namespace.
func lockOf(key driver.Digest) int64 {
	return int64(binary.BigEndian.Uint64(key[:])) ^ numberOf(ns)
}

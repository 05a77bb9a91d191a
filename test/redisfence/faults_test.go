package redisfence_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/test/servers"
)

// claimsOf makes n claims of their own keys.
func claimsOf(first uint64, n int) []driver.Claim {
	out := make([]driver.Claim, n)
	for i, key := range batchKeys(first, n) {
		out[i] = claimOf(key, first+uint64(i))
	}
	return out
}

// hold claims and wants every key.
func hold(tb testing.TB, store driver.Store, ns string, claims []driver.Claim) []driver.Claimed {
	tb.Helper()
	answers := store.Claim(tb.Context(), ns, claims)
	for i, a := range answers {
		if a.Err != nil || a.Answer != driver.New {
			tb.Fatalf("claim %d: %v, %v", i, a.Answer, a.Err)
		}
	}
	return answers
}

// sealsOf makes the seals of held claims.
func sealsOf(claims []driver.Claim, held []driver.Claimed) []driver.Transition {
	out := make([]driver.Transition, len(claims))
	for i := range claims {
		out[i] = sealOf(&claims[i], &held[i].Record)
	}
	return out
}

func wantApplied(tb testing.TB, answers []driver.Applied, want driver.Outcome) {
	tb.Helper()
	for i, a := range answers {
		if a.Err != nil || a.Outcome != want {
			tb.Fatalf("transition %d: %v, %v, want %v", i, a.Outcome, a.Err, want)
		}
	}
}

func wantErrors(tb testing.TB, answers []driver.Claimed, text string) {
	tb.Helper()
	for i, a := range answers {
		if a.Err == nil || !strings.Contains(a.Err.Error(), text) || a.Answer != driver.NoAnswer {
			tb.Fatalf("claim %d: %v, %v, want no answer and an error with %q", i, a.Answer, a.Err, text)
		}
	}
}

// The client library sends a script again when its reply is lost. The claim
// then meets itself and must not take itself for another holder.
func TestLostReplyIsSentAgain(t *testing.T) {
	p := startProxy(t, servers.OwnRedis(t, nil).Addr())
	store, ns := open(t, p.client(t, func(o *redis.Options) { o.MaxRetries = 3 }), nil), namespace(t)
	hold(t, store, ns, claimsOf(1, 1)) // the scripts are known now

	before := p.seen()
	p.set(func(p *proxy) { p.lose = 2 })
	claims := claimsOf(100, 700)
	held := hold(t, store, ns, claims)
	if sent := p.seen() - before; sent < 4 {
		t.Fatalf("the scripts were sent %d times: no reply was lost", sent)
	}
	records, err := store.Get(t.Context(), ns, batchKeys(100, 700))
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if records[i].Token != held[i].Record.Token {
			t.Fatalf("claim %d: answered token %d, the record has %d", i, held[i].Record.Token, records[i].Token)
		}
	}
	p.set(func(p *proxy) { p.lose = 1 })
	for i, a := range store.Apply(t.Context(), ns, sealsOf(claims, held)) {
		if a.Err != nil || a.Outcome != driver.OK && a.Outcome != driver.Repeated {
			t.Fatalf("seal %d: %v, %v", i, a.Outcome, a.Err)
		}
	}
}

// Without re-sends a lost reply is an error, and the same claim sent again is
// the holder.
func TestLostReplyIsUnknown(t *testing.T) {
	p := startProxy(t, servers.OwnRedis(t, nil).Addr())
	store, ns := open(t, p.client(t, func(o *redis.Options) { o.MaxRetries = -1 }), nil), namespace(t)
	hold(t, store, ns, claimsOf(1, 1))

	p.set(func(p *proxy) { p.lose = 1 })
	claims := claimsOf(100, 10)
	wantErrors(t, store.Claim(t.Context(), ns, claims), "EOF")
	held := hold(t, store, ns, claims)
	other := claimsOf(100, 10)
	for i := range other {
		other[i].Nonce[15] = 9
	}
	for i, a := range store.Claim(t.Context(), ns, other) {
		if a.Err != nil || a.Answer != driver.Held || a.Record.Token != held[i].Record.Token {
			t.Fatalf("another claim %d: %v, %v", i, a.Answer, a.Err)
		}
	}
}

// What the server answers instead of running a script is an error for exactly
// the chunk's items, and the cause can be read.
func TestServerRefuses(t *testing.T) {
	p := startProxy(t, servers.OwnRedis(t, nil).Addr())
	store, ns := open(t, p.client(t, func(o *redis.Options) { o.MaxRetries = -1 }), nil), namespace(t)
	hold(t, store, ns, claimsOf(1, 1))
	for _, text := range []string{
		"LOADING Redis is loading the dataset in memory", "CLUSTERDOWN Hash slot not served", "READONLY You can't write against a read only replica.",
		"NOREPLICAS Not enough good replicas to write.", "MISCONF Errors writing to the AOF file", "NOPERM no permission", "TRYAGAIN Multiple keys request during rehashing of slot",
	} {
		p.set(func(p *proxy) { p.refuse = text })
		wantErrors(t, store.Claim(t.Context(), ns, claimsOf(100, 2)), text)
		if _, err := store.Get(t.Context(), ns, batchKeys(100, 2)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("get answers %v, want %q", err, text)
		}
		p.set(func(p *proxy) { p.refuse = "" })
		records, err := store.Get(t.Context(), ns, batchKeys(100, 2))
		if err != nil || records[0].State != driver.Absent || records[1].State != driver.Absent {
			t.Errorf("after %s: %v, %v", text, records, err)
		}
	}
}

// Calls that are given up while their reply is on its way are unknown, and no
// later call reads that reply.
func TestCancelledInFlight(t *testing.T) {
	p := startProxy(t, servers.OwnRedis(t, nil).Addr())
	store, ns := open(t, p.client(t, func(o *redis.Options) { o.PoolSize = 2; o.PipelinePoolSize = -1 }), nil), namespace(t)
	hold(t, store, ns, claimsOf(1, 1))
	p.set(func(p *proxy) { p.delay = 20 * time.Millisecond })

	const calls = 60
	var wg sync.WaitGroup
	claims := make([][]driver.Claim, calls)
	for i := range calls {
		claims[i] = claimsOf(uint64(1000+10*i), 3)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := fmt.Errorf("caller %d is gone", i)
		timer := time.AfterFunc(time.Duration(i%4)*10*time.Millisecond, func() { cancel(gone) })
		wg.Go(func() {
			defer timer.Stop()
			defer cancel(nil)
			for _, a := range store.Claim(ctx, ns, claims[i]) {
				if a.Err != nil && !errors.Is(a.Err, gone) {
					t.Errorf("claim of caller %d: %v", i, a.Err)
				}
			}
		})
	}
	wg.Wait()
	p.set(func(p *proxy) { p.delay = 0 })
	for i := range calls {
		for j, a := range hold(t, store, ns, claims[i]) {
			if a.Record.Nonce != claims[i][j].Nonce || a.Record.Origin != claims[i][j].Origin {
				t.Errorf("claim %d of caller %d was answered with another's record", j, i)
			}
		}
	}
}

// A claim that waits for a connection longer than the client allows fails; no
// effect may run on it.
func TestPoolTimeout(t *testing.T) {
	client := connect(t, servers.OwnRedis(t, nil).URL())
	opts := redis.Options{Addr: client.Options().Addr}
	opts.PoolSize, opts.PipelinePoolSize, opts.PoolTimeout, opts.MaxRetries = 1, -1, 50*time.Millisecond, -1
	small := redis.NewClient(&opts)
	t.Cleanup(func() { _ = small.Close() })
	store, ns := open(t, small, nil), namespace(t)
	claims := claimsOf(1, 3)
	held := hold(t, store, ns, claims)

	release := occupy(t, small)
	wantErrors(t, store.Claim(t.Context(), ns, claimsOf(100, 2)), "pool timeout")

	// Renewals have a connection of their own and do not notice.
	renewals := make([]driver.Transition, len(claims))
	for i := range claims {
		renewals[i] = driver.Transition{Op: driver.Renew, Key: claims[i].Key, Token: held[i].Record.Token, Lease: time.Minute}
	}
	wantApplied(t, store.Apply(t.Context(), ns, renewals), driver.OK)
	release()
	hold(t, store, ns, claimsOf(100, 2))
}

// occupy takes a connection of the client until the answer is called.
func occupy(t *testing.T, client *redis.Client) (release func()) {
	t.Helper()
	conn := client.Conn()
	if err := conn.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return func() { _ = conn.Close() }
}

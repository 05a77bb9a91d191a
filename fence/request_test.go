package fence_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
)

func TestClaimRefusesWhatHasNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, &fence.Options{Retention: time.Minute})
		bad := map[string]func(*fence.Request){
			"no key":                func(r *fence.Request) { r.Key = fence.Key{} },
			"attempt 0":             func(r *fence.Request) { r.Attempt = 0 },
			"no kind":               func(r *fence.Request) { r.Kind = driver.KindNone },
			"kind without a fence":  func(r *fence.Request) { r.Kind = driver.KindAtLeastOnce },
			"negative lease":        func(r *fence.Request) { r.Lease = -1 },
			"lease of microseconds": func(r *fence.Request) { r.Lease = 900 * time.Microsecond },
			"lease over retention":  func(r *fence.Request) { r.Lease = time.Minute + 1 },
		}
		for name, spoil := range bad {
			first, second, third := request(1), request(2), request(3)
			spoil(second)
			out := s.Claim(t.Context(), []*fence.Request{first, second, third})
			if out[0].Answer != driver.New || out[2].Answer != driver.New || out[0].Err != nil || out[2].Err != nil {
				t.Errorf("%s: the others were answered %v (%v) and %v (%v), want new", name, out[0].Answer, out[0].Err, out[2].Answer, out[2].Err)
				continue
			}
			if out[1].Err == nil || out[1].Hold != nil || get(t, s, 2).State != driver.Absent {
				t.Errorf("%s: answered %v (%v)", name, out[1].Answer, out[1].Err)
			}
			for _, c := range []fence.Claimed{out[0], out[2]} {
				apply(t, s, c.Hold.Release(), driver.OK)
				c.Hold.Drop()
			}
		}
		if out := s.Claim(t.Context(), nil); len(out) != 0 {
			t.Errorf("an empty batch was answered %v", out)
		}
	})
}

func TestClaimRefusesOneKeyTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), nil)
		out := s.Claim(t.Context(), []*fence.Request{request(1), request(2), request(1)})
		if out[0].Answer != driver.New || out[1].Answer != driver.New {
			t.Fatalf("answers: %v %v", out[0], out[1])
		}
		if out[2].Err == nil || !strings.Contains(out[2].Err.Error(), "twice") {
			t.Errorf("the second of one key was answered %v (%v)", out[2].Answer, out[2].Err)
		}
		applied := s.Apply(t.Context(), []driver.Transition{seal(out[0].Hold), seal(out[1].Hold), out[0].Hold.Release()})
		if applied[0].Outcome != driver.OK || applied[1].Outcome != driver.OK || applied[2].Err == nil {
			t.Errorf("transitions: %+v", applied)
		}
		out[0].Hold.Drop()
		out[1].Hold.Drop()
	})
}

func TestZeroLeaseIsTheDefaultOfTheKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), nil)
		for n, want := range map[driver.Kind]time.Duration{driver.KindIdempotent: 10 * time.Second, driver.KindProbed: 10 * time.Second, driver.KindAtMostOnce: time.Minute} {
			r := request(int(n))
			r.Kind, r.Lease = n, 0
			c := claim(t, s, r, driver.New)
			if got := time.Until(driver.Time(c.Record.LeaseEnd)); got != want {
				t.Errorf("%v: the record's lease ends in %v, want %v", n, got, want)
			}
			c.Hold.Drop()
		}
	})
}

func TestClaimWithEndedContextWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := request(1)
		if c := s.Claim(ctx, []*fence.Request{r})[0]; !errors.Is(c.Err, context.Canceled) || c.Hold != nil {
			t.Errorf("answered %v with %v", c.Answer, c.Err)
		}
		if state := get(t, s, 1).State; state != driver.Absent {
			t.Errorf("the record is %v, want none", state)
		}
		s.Abandon(r)
	})
}

// loseReply decides claims and answers an error.
func loseReply(store *faulty) {
	store.onClaim(func(ctx context.Context, claims []driver.Claim) []driver.Claimed {
		store.Store.Claim(ctx, namespaceText, claims)
		return failClaims(claims)
	})
}

func TestSameRequestAfterALostReplyGetsTheSameClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		r := request(1)
		loseReply(store)
		if c := s.Claim(t.Context(), []*fence.Request{r})[0]; !errors.Is(c.Err, errDown) || c.Hold != nil {
			t.Fatalf("answered %v with %v", c.Answer, c.Err)
		}
		made := get(t, s, 1)
		store.onClaim(nil)
		claim(t, s, request(1), driver.Held) // somebody else
		first := time.Now()
		pass(2 * time.Second)
		h := claim(t, s, r, driver.New).Hold
		if h.Token() != made.Token {
			t.Errorf("token = %d, want that of the first claim, %d", h.Token(), made.Token)
		}
		// The store's lease is that of the first sending, so is the holder's.
		if want := first.Add(7500 * time.Millisecond); !h.End().Equal(want) {
			t.Errorf("End = %v after the first sending, want 7.5s", h.End().Sub(first))
		}
		h.Drop()
	})
}

func TestAnsweredRequestIsAnotherClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), nil)
		r := request(1)
		first := claim(t, s, r, driver.New).Hold
		if c := claim(t, s, r, driver.Held); c.Record.Token != first.Token() {
			t.Errorf("held by token %d, want %d", c.Record.Token, first.Token())
		}
		first.Drop() // as if its process had died
		pass(10*time.Second + time.Microsecond)
		second := claim(t, s, r, driver.InDoubt).Hold
		if second.Token() <= first.Token() || second.Record().Attempt != 2 || second.Record().Takeovers != 1 {
			t.Errorf("after token %d: %+v", first.Token(), second.Record())
		}
		second.Drop()
	})
}

func TestReleasedRequestMayAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFaulty(), nil)
		r := request(1)
		h := claim(t, s, r, driver.New).Hold
		apply(t, s, h.Release(), driver.OK)
		h.Drop()
		claim(t, s, r, driver.New).Hold.Drop()
	})
}

func TestClaimThatTravelledTooLongIsRefusedAndMayBeSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, &fence.Options{ClaimTimeout: 3 * time.Second})
		store.onClaim(func(ctx context.Context, claims []driver.Claim) []driver.Claimed {
			travel(3*time.Second + time.Millisecond)
			return store.Store.Claim(ctx, namespaceText, claims)
		})
		r := request(1)
		if c := s.Claim(t.Context(), []*fence.Request{r})[0]; !errors.Is(c.Err, driver.ErrTooLate) {
			t.Fatalf("answered %v with %v, want ErrTooLate", c.Answer, c.Err)
		}
		if state := get(t, s, 1).State; state != driver.Absent {
			t.Fatalf("the record is %v, want none", state)
		}
		store.onClaim(nil)
		claim(t, s, r, driver.New).Hold.Drop()
	})
}

// slowReply answers claims after d.
func slowReply(store *faulty, d time.Duration) {
	store.onClaim(func(ctx context.Context, claims []driver.Claim) []driver.Claimed {
		out := store.Store.Claim(ctx, namespaceText, claims)
		travel(d)
		return out
	})
}

func TestLateAnswerIsRenewedBeforeItIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		for n, d := range []time.Duration{6 * time.Second, 9 * time.Second, time.Minute} {
			slowReply(store, d)
			h := claim(t, s, request(n), driver.New).Hold
			if want := time.Now().Add(7500 * time.Millisecond); !h.Live(time.Now()) || !h.End().Equal(want) {
				t.Errorf("answer after %v: live %v until %v, want %v", d, h.Live(time.Now()), h.End(), want)
			}
			h.Drop()
		}
	})
}

func TestLateAnswerOfAClaimThatWasTakenOverIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s, other := open(t, store, nil), open(t, store.Store, nil)
		slowReply(store, 11*time.Second)
		var wg sync.WaitGroup
		r := request(1)
		wg.Go(func() {
			c := s.Claim(context.Background(), []*fence.Request{r})[0]
			if !errors.Is(c.Err, fence.ErrLeaseLost) || c.Hold != nil {
				t.Errorf("answered %v, hold %v, error %v, want ErrLeaseLost", c.Answer, c.Hold, c.Err)
			}
		})
		pass(10*time.Second + time.Millisecond)
		h := claim(t, other, request(1), driver.InDoubt).Hold
		wg.Wait()
		store.onClaim(nil)
		claim(t, s, r, driver.Held)
		h.Drop()
	})
}

func TestLateAnswerThatCannotBeRenewedKeepsItsNonce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		s := open(t, store, nil)
		slowReply(store, 6*time.Second)
		store.onApply(down)
		r := request(1)
		if c := s.Claim(t.Context(), []*fence.Request{r})[0]; !errors.Is(c.Err, errDown) || c.Hold != nil || c.Answer != driver.NoAnswer {
			t.Fatalf("answered %v, hold %v, error %v", c.Answer, c.Hold, c.Err)
		}
		token := get(t, s, 1).Token
		store.onClaim(nil)
		store.onApply(nil)
		pass(time.Hour)
		h := claim(t, s, r, driver.New).Hold
		if h.Token() != token || !h.Live(time.Now()) {
			t.Errorf("token %d, live %v, want %d, live", h.Token(), h.Live(time.Now()), token)
		}
		h.Drop()
	})
}

func TestNonceIsKeptUntilTheStoreHasSpoken(t *testing.T) {
	for answer, kept := range map[error]bool{errDown: true, context.DeadlineExceeded: true, driver.ErrUnreadable: true, driver.ErrTooLate: false, driver.ErrReleased: false, nil: false} {
		synctest.Test(t, func(t *testing.T) {
			store := newFaulty()
			s := open(t, store, nil)
			var nonces []driver.Nonce
			store.onClaim(func(_ context.Context, claims []driver.Claim) []driver.Claimed {
				nonces = append(nonces, claims[0].Nonce)
				return []driver.Claimed{{Answer: driver.Held, Err: answer}}
			})
			r := request(1)
			for range 2 {
				s.Claim(t.Context(), []*fence.Request{r})
			}
			if same := nonces[0] == nonces[1]; same != kept || nonces[0] == (driver.Nonce{}) {
				t.Errorf("after the answer %v the nonces %x were sent", answer, nonces)
			}
			s.Abandon(r)
		})
	}
}

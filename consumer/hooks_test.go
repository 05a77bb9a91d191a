package consumer_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
)

// hookStore lets a test stand between the fence and its store. A nil hook lets
// everything pass.
type hookStore struct {
	fencedriver.Store
	onClaim func(ctx context.Context, claims []fencedriver.Claim, pass func() []fencedriver.Claimed) []fencedriver.Claimed
	onApply func(ctx context.Context, ts []fencedriver.Transition, pass func() []fencedriver.Applied) []fencedriver.Applied
}

func (s *hookStore) Claim(ctx context.Context, namespace string, claims []fencedriver.Claim) []fencedriver.Claimed {
	pass := func() []fencedriver.Claimed { return s.Store.Claim(ctx, namespace, claims) }
	if s.onClaim == nil {
		return pass()
	}
	return s.onClaim(ctx, claims, pass)
}

func (s *hookStore) Apply(ctx context.Context, namespace string, ts []fencedriver.Transition) []fencedriver.Applied {
	pass := func() []fencedriver.Applied { return s.Store.Apply(ctx, namespace, ts) }
	if s.onApply == nil {
		return pass()
	}
	return s.onApply(ctx, ts, pass)
}

func failClaims(n int, err error) []fencedriver.Claimed {
	out := make([]fencedriver.Claimed, n)
	for i := range out {
		out[i].Err = err
	}
	return out
}

func failApplies(n int, err error) []fencedriver.Applied {
	out := make([]fencedriver.Applied, n)
	for i := range out {
		out[i].Err = err
	}
	return out
}

// hook puts a hookStore between b's fence and its store.
func (b *bench) hook() *hookStore {
	s := &hookStore{Store: b.store}
	b.fence = b.fenceOver(s)
	return s
}

// space opens the namespace of b's consumers from outside, as another process
// would. It is closed with the test.
func (b *bench) space() *fence.Space {
	b.t.Helper()
	ns, err := fence.NewNamespace(fence.Nil, group)
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := b.fenceOver(b.store).Open(b.t.Context(), ns)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = s.Close(context.WithoutCancel(b.t.Context())) })
	return s
}

// idKey is the key of a record with this dedupe id under ScopeID.
func idKey(id string) fence.Key {
	return fence.RecordKey(fence.ScopeID, topic, 0, fence.Nil, fence.Text(id))
}

// record returns what the store holds for a dedupe id.
func (b *bench) record(id string) fencedriver.Record {
	b.t.Helper()
	s := b.space()
	defer func() { _ = s.Close(context.WithoutCancel(b.t.Context())) }()
	records, err := s.Get(b.t.Context(), []fencedriver.Digest{idKey(id).Digest()})
	if err != nil {
		b.t.Fatal(err)
	}
	return records[0]
}

// claim takes a key as another process would and keeps it until its hold is
// dropped.
func (b *bench) claim(s *fence.Space, id, value string, kind fencedriver.Kind, lease time.Duration) fence.Claimed {
	b.t.Helper()
	r := &fence.Request{Key: idKey(id), Kind: kind, Attempt: 1, Lease: lease, Fingerprint: fence.FingerprintOf([]byte(value))}
	c := s.Claim(b.t.Context(), []*fence.Request{r})[0]
	if c.Err != nil {
		b.t.Fatal(c.Err)
	}
	return c
}

// abandon leaves a key as a process that died while its effect ran.
func (b *bench) abandon(id, value string, kind fencedriver.Kind, lease time.Duration) {
	b.t.Helper()
	s := b.space()
	c := b.claim(s, id, value, kind, lease)
	c.Hold.Drop()
	_ = s.Close(b.t.Context())
}

// script is an effect function that answers from a list, the last answer again
// and again, and books what it says was applied.
type script struct {
	b       *bench
	answers []error
	mu      sync.Mutex
	runs    []effect.Input
	at      []time.Time
}

func (s *script) run(ctx context.Context, in effect.Input) (effect.Receipt, error) {
	s.mu.Lock()
	answer := s.answers[min(len(s.runs), len(s.answers)-1)]
	s.runs = append(s.runs, in)
	s.at = append(s.at, time.Now())
	s.mu.Unlock()
	if answer != nil {
		return effect.Receipt{}, answer
	}
	return s.b.ledger.bookEffect(ctx, in)
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}

// bubble runs a test on the bubble's clock.
func bubble(t *testing.T, partitions int, f func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newBench(t, partitions)) })
}

func (b *bench) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// swapStore is a store that is replaced under the fence.
type swapStore struct{ fencedriver.Store }

package fencetest

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

// wrapped is a store with some of its calls replaced.
type wrapped struct {
	driver.Store
	claim  func(ctx context.Context, namespace string, claims []driver.Claim) []driver.Claimed
	apply  func(ctx context.Context, namespace string, transitions []driver.Transition) []driver.Applied
	get    func(ctx context.Context, namespace string, keys []driver.Digest) ([]driver.Record, error)
	scan   func(ctx context.Context, namespace string, filter driver.Filter, yield func(driver.Digest, driver.Record) bool) error
	purge  func(ctx context.Context, namespace string, limit int) (int, error)
	marker func(ctx context.Context, namespace string, update driver.Marker) (driver.Marker, error)
	grade  func(ctx context.Context) (driver.Grade, error)
	close  func() error
}

func (w *wrapped) Claim(ctx context.Context, namespace string, claims []driver.Claim) []driver.Claimed {
	if w.claim != nil {
		return w.claim(ctx, namespace, claims)
	}
	return w.Store.Claim(ctx, namespace, claims)
}

func (w *wrapped) Apply(ctx context.Context, namespace string, transitions []driver.Transition) []driver.Applied {
	if w.apply != nil {
		return w.apply(ctx, namespace, transitions)
	}
	return w.Store.Apply(ctx, namespace, transitions)
}

func (w *wrapped) Get(ctx context.Context, namespace string, keys []driver.Digest) ([]driver.Record, error) {
	if w.get != nil {
		return w.get(ctx, namespace, keys)
	}
	return w.Store.Get(ctx, namespace, keys)
}

func (w *wrapped) Scan(ctx context.Context, namespace string, filter driver.Filter, yield func(driver.Digest, driver.Record) bool) error {
	if w.scan != nil {
		return w.scan(ctx, namespace, filter, yield)
	}
	return w.Store.Scan(ctx, namespace, filter, yield)
}

func (w *wrapped) Purge(ctx context.Context, namespace string, limit int) (int, error) {
	if w.purge != nil {
		return w.purge(ctx, namespace, limit)
	}
	return w.Store.Purge(ctx, namespace, limit)
}

func (w *wrapped) Marker(ctx context.Context, namespace string, update driver.Marker) (driver.Marker, error) {
	if w.marker != nil {
		return w.marker(ctx, namespace, update)
	}
	return w.Store.Marker(ctx, namespace, update)
}

func (w *wrapped) Grade(ctx context.Context) (driver.Grade, error) {
	if w.grade != nil {
		return w.grade(ctx)
	}
	return w.Store.Grade(ctx)
}

func (w *wrapped) Close() error {
	if w.close != nil {
		return w.close()
	}
	return w.Store.Close()
}

// wrap replaces calls of a right store.
func wrap(replace func(w *wrapped)) bend {
	return bend{wrap: func(s driver.Store) driver.Store {
		w := &wrapped{Store: s}
		replace(w)
		return w
	}}
}

// eachClaim changes the claims of a batch before the store sees them.
func eachClaim(change func(c *driver.Claim)) bend {
	return wrap(func(w *wrapped) {
		w.claim = func(ctx context.Context, namespace string, claims []driver.Claim) []driver.Claimed {
			claims = append([]driver.Claim(nil), claims...)
			for i := range claims {
				change(&claims[i])
			}
			return w.Store.Claim(ctx, namespace, claims)
		}
	})
}

// eachTransition does the same to transitions.
func eachTransition(change func(t *driver.Transition)) bend {
	return wrap(func(w *wrapped) {
		w.apply = func(ctx context.Context, namespace string, transitions []driver.Transition) []driver.Applied {
			transitions = append([]driver.Transition(nil), transitions...)
			for i := range transitions {
				change(&transitions[i])
			}
			return w.Store.Apply(ctx, namespace, transitions)
		}
	})
}

// eachGot changes what get answers.
func eachGot(change func(r *driver.Record)) bend {
	return wrap(func(w *wrapped) {
		w.get = func(ctx context.Context, namespace string, keys []driver.Digest) ([]driver.Record, error) {
			out, err := w.Store.Get(ctx, namespace, keys)
			for i := range out {
				change(&out[i])
			}
			return out, err
		}
	})
}

// racing looks first and claims then, as SETNX after GET does.
func racing(w *wrapped) {
	w.claim = func(ctx context.Context, namespace string, claims []driver.Claim) []driver.Claimed {
		keys := make([]driver.Digest, len(claims))
		for i := range claims {
			keys[i] = claims[i].Key
		}
		before, err := w.Store.Get(ctx, namespace, keys)
		time.Sleep(time.Millisecond) // in a bubble: all callers have looked
		out := w.Store.Claim(ctx, namespace, claims)
		for i := range out {
			if err == nil && before[i].State == driver.Absent && out[i].Answer == driver.Held {
				out[i].Answer, out[i].Record.Nonce = driver.New, claims[i].Nonce
			}
		}
		return out
	}
}

// purgingDoubt resolves what is in doubt to be rid of it.
func purgingDoubt(w *wrapped) {
	w.purge = func(ctx context.Context, namespace string, limit int) (int, error) {
		var all []driver.Transition
		err := w.Store.Scan(ctx, namespace, driver.Filter{InDoubt: true, States: []driver.State{driver.Dead}}, func(key driver.Digest, r driver.Record) bool {
			all = append(all, driver.Transition{Op: driver.Resolve, Key: key, Token: r.Token, Retention: time.Microsecond})
			return true
		})
		if err != nil {
			return 0, err
		}
		w.Store.Apply(ctx, namespace, all)
		time.Sleep(time.Millisecond)
		return w.Store.Purge(ctx, namespace, limit)
	}
}

// wrapMutants are stores that break a rule outside the record's own moves.
var wrapMutants = map[string]mutant{
	"retention is ignored":          {rule: "time/expires", bend: eachTransition(func(t *driver.Transition) { t.Retention = 0 })},
	"nothing stays for ever":        {rule: "time/stays", bend: eachTransition(func(t *driver.Transition) { t.Retention = max(t.Retention, time.Microsecond) })},
	"doubt is purged":               {rule: "time/doubt-stays", bend: wrap(purgingDoubt)},
	"pending is purged":             {rule: "time/claim-stops-expiry", bend: bend{purges: func(*record, int64) bool { return true }}},
	"a resolution has no retention": {rule: "time/resolved-expires", bend: eachTransition(func(t *driver.Transition) { resolveForEver(t) })},
	"purge knows no limit": {rule: "time/purge", bend: wrap(func(w *wrapped) {
		w.purge = func(ctx context.Context, n string, _ int) (int, error) { return w.Store.Purge(ctx, n, 1000) }
	})},
	"purge takes what lives":         {rule: "time/purge-moved-on", bend: bend{purges: func(*record, int64) bool { return true }}},
	"a tombstone lives for a minute": {rule: "time/tombstone", bend: released(func(_, next *record) { next.Expire -= int64(50 * time.Minute / time.Microsecond) })},
	"get answers sorted": {rule: "get/order", bend: wrap(func(w *wrapped) {
		w.get = func(ctx context.Context, n string, keys []driver.Digest) ([]driver.Record, error) {
			out, err := w.Store.Get(ctx, n, keys)
			for i := range len(out) / 2 {
				out[i], out[len(out)-1-i] = out[len(out)-1-i], out[i]
			}
			return out, err
		}
	})},
	"scan knows no filter": {rule: "scan/filter", bend: wrap(func(w *wrapped) {
		w.scan = func(ctx context.Context, n string, _ driver.Filter, yield func(driver.Digest, record) bool) error {
			return w.Store.Scan(ctx, n, driver.Filter{}, yield)
		}
	})},
	"scan does not stop": {rule: "scan/stops", bend: wrap(func(w *wrapped) {
		w.scan = func(ctx context.Context, n string, f driver.Filter, yield func(driver.Digest, record) bool) error {
			return w.Store.Scan(ctx, n, f, func(key driver.Digest, r record) bool { yield(key, r); return true })
		}
	})},
	"scan ends after a page": {rule: "scan/many", bend: wrap(func(w *wrapped) {
		w.scan = func(ctx context.Context, n string, f driver.Filter, yield func(driver.Digest, record) bool) error {
			left := 500
			return w.Store.Scan(ctx, n, f, func(key driver.Digest, r record) bool { left--; return yield(key, r) && left > 0 })
		}
	})},
	"namespaces share their keys": {rule: "namespace/apart", bend: wrap(func(w *wrapped) {
		w.claim = func(ctx context.Context, n string, claims []driver.Claim) []driver.Claimed {
			return w.Store.Claim(ctx, strings.TrimSuffix(n, "2"), claims)
		}
	})},
	"the last epoch wins": {rule: "marker/merge", bend: wrap(func(w *wrapped) {
		w.marker = func(ctx context.Context, n string, update driver.Marker) (driver.Marker, error) {
			out, err := w.Store.Marker(ctx, n, update)
			out.Epoch = update.Epoch
			return out, err
		}
	})},
	"markers overwrite each other": {rule: "marker/together", bend: wrap(func(w *wrapped) {
		w.marker = func(ctx context.Context, n string, update driver.Marker) (driver.Marker, error) {
			clear(update.Committed)
			return w.Store.Marker(ctx, n, update)
		}
	})},
	"the grade is not explained": {rule: "grade/told", bend: wrap(func(w *wrapped) {
		w.grade = func(context.Context) (driver.Grade, error) { return driver.Grade{Level: driver.GradeMachine}, nil }
	})},
	"one failure fails the batch": {rule: "batch/mixed", bend: wrap(func(w *wrapped) {
		w.claim = func(ctx context.Context, n string, claims []driver.Claim) []driver.Claimed {
			out := w.Store.Claim(ctx, n, claims)
			for i := 1; i < len(out); i++ {
				if out[i].Err == nil {
					out[i].Err = out[i-1].Err
				}
			}
			return out
		}
	})},
	"an empty batch gets an answer": {rule: "batch/empty", bend: wrap(func(w *wrapped) {
		w.claim = func(ctx context.Context, n string, claims []driver.Claim) []driver.Claimed {
			return append(w.Store.Claim(ctx, n, claims), make([]driver.Claimed, 1)...)[:max(1, len(claims))]
		}
	})},
	"receipts are cut":       {rule: "batch/large-receipt", bend: eachTransition(func(t *driver.Transition) { t.Receipt = t.Receipt[:min(len(t.Receipt), 1<<16)] })},
	"topics end at a zero":   {rule: "batch/odd-bytes", bend: eachClaim(func(c *driver.Claim) { c.Origin.Topic, _, _ = strings.Cut(c.Origin.Topic, "\x00") })},
	"get shares its receipt": {rule: "batch/no-shared-memory", bend: sharing()},
	"claims are sorted in place": {rule: "batch/input-kept", bend: wrap(func(w *wrapped) {
		w.claim = func(ctx context.Context, n string, claims []driver.Claim) []driver.Claimed {
			claims[0], claims[len(claims)-1] = claims[len(claims)-1], claims[0]
			return w.Store.Claim(ctx, n, claims)
		}
	})},
	"looking and claiming are two steps":  {rule: "together/one-wins", bend: wrap(racing)},
	"batches look and claim in two steps": {rule: "together/batches", bend: wrap(racing)},
	"an ended context is written all the same": {rule: "fail/context", bend: wrap(func(w *wrapped) {
		w.apply = func(ctx context.Context, n string, t []driver.Transition) []driver.Applied {
			return w.Store.Apply(context.WithoutCancel(ctx), n, t)
		}
	})},
	"close does nothing":           {rule: "fail/closed", bend: wrap(func(w *wrapped) { w.close = func() error { return nil } })},
	"a lost reply loses the nonce": {rule: "faults/lost-reply", bend: eachClaim(func(c *driver.Claim) { c.Nonce = nonce() })},
	"a delayed claim comes anew":   {rule: "faults/delayed", bend: eachClaim(func(c *driver.Claim) { c.Nonce = nonce() })},
	"doubles come back after their release": {rule: "faults/doubled", bend: asked(func(_ *driver.Claim, found *record) {
		if found != nil {
			found.Released = driver.Nonce{}
		}
	}, nil)},
	"doubles drop steps": {rule: "faults/doubled", bend: said(func(t *driver.Transition, found *record) {
		if found != nil && t.Op == driver.Keep {
			found.Steps = nil
		}
	}, nil)},
	"doubles undo give_up": {rule: "faults/doubled", bend: said(func(t *driver.Transition, found *record) {
		if found != nil && t.Op == driver.Retry {
			found.Verdict = driver.NoVerdict
		}
	}, nil)},
	"doubles are new transitions": {rule: "faults/all", bend: repeatedRefused(driver.Release)},
}

func resolveForEver(t *driver.Transition) {
	if t.Op == driver.Resolve {
		t.Retention = 0
	}
}

// sharing answers every get of a receipt from the same memory.
func sharing() bend {
	kept := map[string][]byte{}
	return eachGot(func(r *driver.Record) {
		if first := kept[string(bytes.Clone(r.Receipt))]; first != nil {
			r.Receipt = first
		} else if r.Receipt != nil {
			kept[string(r.Receipt)] = r.Receipt
		}
	})
}

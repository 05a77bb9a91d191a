package effecttest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence/driver"
)

// harness runs the cases one after the other.
type harness struct {
	Config
	ctx    context.Context
	kind   driver.Kind
	nonce  string
	inputs int
	keys   map[string]bool
	// firstRun is how long the first run took.
	firstRun time.Duration
	// hangs says that an effect was seen to outlive its context.
	hangs bool
	// note is shown with a passed row.
	note string
}

func newHarness(ctx context.Context, c Config) *harness {
	return &harness{Config: c, ctx: ctx, kind: c.Effect.Kind(), nonce: rand.Text(), keys: map[string]bool{}}
}

var (
	errHangs  = errors.New("the effect did not return")
	errGoexit = errors.New("the effect ended its goroutine (runtime.Goexit)")
)

// input returns a record that no other case has used.
func (h *harness) input() (effect.Input, error) {
	h.inputs++
	in := h.Input
	if h.NewInput != nil {
		in = h.NewInput(h.inputs)
	} else {
		in.Key = fmt.Sprintf("%s:effecttest-%s-%d", in.Key, h.nonce, h.inputs)
		in.EffectID = ""
	}
	if in.Key == "" || h.keys[in.Key] {
		return in, fmt.Errorf("the call NewInput(%d) returned the key %q, which is empty or was used before: give each record its own", h.inputs, in.Key)
	}
	h.keys[in.Key] = true
	if in.EffectID == "" {
		sum := sha256.Sum256([]byte("oncefence-effect-1:" + in.Namespace + ":" + in.Key))
		in.EffectID = hex.EncodeToString(sum[:16])
	}
	in.Token, in.Attempt, in.Step = 1, 1, 0
	if in.FirstSeen.IsZero() {
		in.FirstSeen = time.Now()
	}
	return in, nil
}

// takeover is in as the next holder of the claim is given it.
func takeover(in effect.Input) effect.Input {
	in.Token++
	in.Attempt++
	return in
}

// crash is the end of the process.
func (h *harness) crash() {
	if h.Restart != nil {
		h.Effect = h.Restart()
	}
}

// run calls the effect with given and waits for it, at most Limit longer than
// inner lasts. The error is errHangs or nil.
func (h *harness) run(inner, given context.Context, in effect.Input) (effect.Outcome, error) {
	return h.await(inner, h.start(given, in))
}

// plain is a run that nothing disturbs.
func (h *harness) plain(in effect.Input) (effect.Outcome, error) {
	ctx, cancel := context.WithTimeout(h.ctx, h.Effect.MaxRunTime())
	defer cancel()
	return h.run(ctx, ctx, in)
}

func (h *harness) start(given context.Context, in effect.Input) <-chan effect.Outcome {
	answer := make(chan effect.Outcome, 1)
	e := h.Effect
	go func() {
		out := effect.Outcome{Err: errGoexit}
		defer func() { answer <- out }()
		out = e.Run(given, in)
	}()
	return answer
}

func (h *harness) await(inner context.Context, answer <-chan effect.Outcome) (effect.Outcome, error) {
	out, ok := within(inner, h.Limit, answer)
	if !ok {
		return effect.Outcome{Err: errHangs}, errHangs
	}
	return out, nil
}

// within waits for an answer until limit after the end of ctx.
func within[T any](ctx context.Context, limit time.Duration, answer <-chan T) (out T, ok bool) {
	select {
	case out = <-answer:
		return out, true
	case <-ctx.Done():
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case out = <-answer:
		return out, true
	case <-t.C:
		return out, false
	}
}

// wait waits d, or until the whole test is over.
func (h *harness) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-h.ctx.Done():
	}
}

// count asks the sink; what is on its way was waited for by the caller.
func (h *harness) count(in effect.Input) (int, error) {
	n, err := h.Applied(h.ctx, in)
	if err != nil {
		return 0, fmt.Errorf("the function Applied cannot say what the sink holds for effect id %s: %w", in.EffectID, err)
	}
	return n, nil
}

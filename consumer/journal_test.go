package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/effect"
)

// stepsEffect is reserve, then pay. fail decides what a step answers after it
// was booked.
func stepsEffect(b *bench, pay func(j *effect.Journal, ctx context.Context, run effect.StepFunc) ([]byte, error), fail func(step string, attempt int) error) effect.Effect {
	return effect.Idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		run := func(step string) effect.StepFunc {
			return func(_ context.Context, id string) ([]byte, error) {
				b.ledger.book(step)
				if !strings.HasSuffix(id, "/"+step) {
					return nil, effect.Permanent(fmt.Errorf("effect id %q", id))
				}
				return []byte("receipt of " + step), fail(step, in.Attempt)
			}
		}
		j := in.Journal()
		receipt, err := j.Idempotent(ctx, "reserve", run("reserve"))
		if err != nil {
			return effect.Receipt{}, err
		}
		if string(receipt) != "receipt of reserve" {
			return effect.Receipt{}, effect.Permanent(fmt.Errorf("receipt %q", receipt))
		}
		if _, err := pay(j, ctx, run("pay")); err != nil {
			return effect.Receipt{}, err
		}
		return effect.Receipt{Payload: []byte(strings.Join(j.Kept(), ","))}, nil
	}, forever())
}

func payOnce(j *effect.Journal, ctx context.Context, run effect.StepFunc) ([]byte, error) {
	return j.AtMostOnce(ctx, "pay", run)
}

func TestJournalKeepsStepsOverARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		b.produce("a", "k", "order a")
		e := stepsEffect(b, payOnce, func(step string, attempt int) error {
			if step == "pay" && attempt == 1 {
				return effect.Temporary(errors.New("nothing was paid"))
			}
			return nil
		})
		b.runFor(10*time.Second, e, b.options())
		if b.ledger.count("reserve") != 1 || b.ledger.count("pay") != 2 || b.log.count("done") != 1 {
			t.Errorf("reserve ran %d times, pay %d times, decisions %v", b.ledger.count("reserve"), b.ledger.count("pay"), b.log)
		}
	})
}

func TestJournalParksAStepThatMustNotRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		b.produce("a", "k", "order a")
		e := stepsEffect(b, payOnce, func(step string, attempt int) error {
			if step == "pay" {
				return errors.New("no answer")
			}
			return nil
		})
		b.runFor(time.Minute, e, b.options())
		dead := b.deadLetters()
		if b.ledger.count("pay") != 1 || len(dead) != 1 {
			t.Fatalf("pay ran %d times, %d dead letters, decisions %v", b.ledger.count("pay"), len(dead), b.log)
		}
		if text := header(dead[0], "oncefence-error"); !strings.Contains(text, "steps applied: reserve") {
			t.Errorf("the dead letter does not list what was applied: %q", text)
		}
	})
}

func TestJournalAsksAboutAProbedStep(t *testing.T) {
	for _, applied := range []bool{true, false} {
		t.Run(fmt.Sprint("applied ", applied), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 1)
				b.produce("a", "k", "order a")
				pay := func(j *effect.Journal, ctx context.Context, run effect.StepFunc) ([]byte, error) {
					return j.Probed(ctx, "pay", run, func(context.Context, string) (effect.Finding, error) {
						if applied {
							return effect.Applied(effect.Receipt{Payload: []byte("found")}), nil
						}
						return effect.NotApplied(), nil
					})
				}
				e := stepsEffect(b, pay, func(step string, attempt int) error {
					if step == "pay" && attempt == 1 {
						return errors.New("no answer")
					}
					return nil
				})
				b.runFor(10*time.Second, e, b.options())
				want := 2
				if applied {
					want = 1
				}
				if b.ledger.count("pay") != want || b.ledger.count("reserve") != 1 || b.log.count("done") != 1 {
					t.Errorf("pay ran %d times, want %d; decisions %v", b.ledger.count("pay"), want, b.log)
				}
			})
		})
	}
}

package effecttest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/effecttest"
)

// ignoring dedupes and never looks at its context.
func ignoring(l *ledger) effect.Func {
	return func(_ context.Context, in effect.Input) (effect.Receipt, error) {
		if times, _, _ := l.state(in); times == 0 {
			l.add(in)
		}
		return effect.Receipt{}, nil
	}
}

// when replaces the good effect where it says so.
func when(f effect.Func, instead func(ctx context.Context, in effect.Input) (wrong bool, err error)) effect.Func {
	return func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		if wrong, err := instead(ctx, in); wrong {
			return effect.Receipt{}, err
		}
		return f(ctx, in)
	}
}

func noRefusals(c *effecttest.Config) { c.Refuse, c.Reject = nil, nil }

type wrongEffect struct {
	name   string
	maker  func(l *ledger) effect.Effect
	change func(c *effecttest.Config)
	reborn func(l *ledger) func() effect.Effect
	fails  []string
	says   string
}

// Each breaks one rule, and exactly the rows of that rule find it.
var wrongEffects = []wrongEffect{
	{
		name: "does nothing",
		maker: func(l *ledger) effect.Effect {
			return atMostOnce(func(context.Context, effect.Input) (effect.Receipt, error) { return effect.Receipt{}, nil })
		},
		fails: []string{"first run"}, says: "the sink holds nothing",
	},
	{
		name: "does it twice",
		maker: func(l *ledger) effect.Effect {
			return probed(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
				l.add(in)
				l.add(in)
				return effect.Receipt{}, nil
			}, l.probe)
		},
		fails: []string{"first run"}, says: "one run: the sink holds 2 effects for one id",
	},
	{
		name: "fails",
		maker: func(l *ledger) effect.Effect {
			return atMostOnce(func(context.Context, effect.Input) (effect.Receipt, error) { return effect.Receipt{}, errUnknown })
		},
		fails: []string{"first run"}, says: "the effect says unknown instead of applied: no such customer",
	},
	{
		name: "panics",
		maker: func(l *ledger) effect.Effect {
			return atMostOnce(func(context.Context, effect.Input) (effect.Receipt, error) { panic("oh no") })
		},
		fails: []string{"first run"}, says: "effect panicked: oh no",
	},
	{
		name: "ends its goroutine",
		maker: func(l *ledger) effect.Effect {
			return atMostOnce(func(context.Context, effect.Input) (effect.Receipt, error) {
				runtime.Goexit()
				return effect.Receipt{}, nil
			})
		},
		fails: []string{"first run"}, says: "runtime.Goexit",
	},
	{
		name: "dedupes only between holders",
		maker: func(l *ledger) effect.Effect {
			return idempotent(when(l.good(true), func(_ context.Context, in effect.Input) (bool, error) {
				_, token, _ := l.state(in)
				if token != in.Token {
					return false, nil
				}
				l.add(in)
				return true, nil
			}))
		},
		fails: []string{"run twice"}, says: "run twice: the sink holds 2 effects for one id: this effect is not idempotent",
	},
	{
		name: "does not tolerate repeats",
		maker: func(l *ledger) effect.Effect {
			return atLeastOnce(when(l.good(true), func(_ context.Context, in effect.Input) (bool, error) {
				_, token, _ := l.state(in)
				return token == in.Token, errors.New("duplicate key")
			}))
		},
		fails: []string{"run twice"}, says: "the second time: the effect says unknown instead of applied: duplicate key",
	},
	{
		name: "takes a second attempt for done",
		maker: func(l *ledger) effect.Effect {
			return idempotent(when(ignoring(l), func(_ context.Context, in effect.Input) (bool, error) { return in.Attempt > 1, nil }))
		},
		change: noRefusals,
		fails:  []string{"crash before the effect"}, says: "the sink holds nothing, though the effect said applied",
	},
	{
		name: "probe takes what it never heard of for applied",
		maker: func(l *ledger) effect.Effect {
			f := when(l.good(false), func(_ context.Context, in effect.Input) (bool, error) { l.hear(in); return false, nil })
			return probed(f, func(ctx context.Context, in effect.Input) (effect.Finding, error) {
				if _, _, heard := l.state(in); !heard {
					return effect.Applied(effect.Receipt{}), nil
				}
				return l.probe(ctx, in)
			})
		},
		fails: []string{"crash before the effect"}, says: "the probe says applied, but the sink holds nothing",
	},
	{
		name:   "dedupes in the memory of the process",
		maker:  func(l *ledger) effect.Effect { return inMemory(l)() },
		reborn: inMemory,
		fails:  []string{"crash after the effect"},
		says:   "crash after the effect, run again: the sink holds 2 effects for one id: this effect is not idempotent: use effect.Probed or effect.AtMostOnce, or make the sink dedupe by Input.EffectID",
	},
	{
		name: "probe forgets",
		maker: func(l *ledger) effect.Effect {
			return probed(l.good(false), func(context.Context, effect.Input) (effect.Finding, error) { return effect.NotApplied(), nil })
		},
		fails: []string{"crash after the effect"}, says: "the sink holds 2 effects for one id: the probe must answer",
	},
	{
		name: "probe cannot say what is there",
		maker: func(l *ledger) effect.Effect {
			return probed(l.good(false), func(ctx context.Context, in effect.Input) (effect.Finding, error) {
				f, err := l.probe(ctx, in)
				if _, applied := f.Applied(); applied {
					return effect.CannotSay(), nil
				}
				return f, err
			})
		},
		fails: []string{"crash after the effect"}, says: "the probe cannot say: every record in doubt would be parked",
	},
	{
		name: "probe fails on what is there",
		maker: func(l *ledger) effect.Effect {
			return probed(l.good(false), func(ctx context.Context, in effect.Input) (effect.Finding, error) {
				f, err := l.probe(ctx, in)
				if _, applied := f.Applied(); applied {
					return f, errBusy
				}
				return f, err
			})
		},
		fails: []string{"crash after the effect"}, says: "the probe cannot say (the sink is busy)",
	},
	{
		name: "goes to the sink with a context that is over",
		maker: func(l *ledger) effect.Effect {
			return probed(ignoring(l), l.probe)
		},
		change: noRefusals,
		fails:  []string{"context already over"}, says: "went to the sink all the same",
	},
	{
		name: "goes on when it wakes up",
		maker: func(l *ledger) effect.Effect {
			return probed(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
				_ = ctx.Value("trace") // looks, but not whether it is over
				l.add(in)
				return effect.Receipt{}, nil
			}, l.probe)
		},
		change: noRefusals,
		fails:  []string{"context already over", "resumed as a zombie"}, says: "an older holder was paused and went on after a newer one had finished: the sink holds 2 effects",
	},
	{
		name: "takes the end of its context for permanent",
		maker: func(l *ledger) effect.Effect {
			return atMostOnce(when(l.good(false), func(ctx context.Context, _ effect.Input) (bool, error) {
				return ctx.Err() != nil, effect.Permanent(ctx.Err())
			}))
		},
		fails: []string{"context already over", "answered late"}, says: "every restart would send records to the dead letters",
	},
	{
		name: "says temporary about what it did",
		maker: func(l *ledger) effect.Effect {
			return atMostOnce(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
				if r, err := l.good(false)(ctx, in); err != nil {
					return r, err
				}
				if err := ctx.Err(); err != nil {
					return effect.Receipt{}, effect.Temporary(err)
				}
				return effect.Receipt{}, nil
			})
		},
		fails: []string{"answered late"}, says: "the effect says temporary (temporary: context canceled), but the sink holds it",
	},
	{
		name: "says applied about what it gave up",
		maker: func(l *ledger) effect.Effect {
			return idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
				if err := ctx.Err(); err != nil {
					return effect.Receipt{}, effect.Temporary(err)
				}
				if ctx.Err() != nil {
					return effect.Receipt{}, nil
				}
				return l.good(true)(context.Background(), in)
			})
		},
		fails: []string{"answered late"}, says: "the effect says applied, but the sink holds nothing",
	},
	{
		name: "lands later than it says",
		maker: func(l *ledger) effect.Effect {
			return effect.Probed(landsLater(l), l.probe, effect.ProbedOptions{Settled: effect.Immediately})
		},
		fails: []string{"answered late"}, says: "brought to an end by the next holder: the sink holds 2 effects",
	},
	{
		name: "sends again by itself when it is hurried",
		maker: func(l *ledger) effect.Effect {
			return atMostOnce(when(l.good(false), func(ctx context.Context, in effect.Input) (bool, error) {
				if ctx.Err() != nil {
					return false, nil
				}
				if ctx.Err() == nil {
					return false, nil
				}
				l.add(in)
				l.add(in)
				return true, ctx.Err()
			}))
		},
		fails: []string{"answered late"}, says: "the sink holds 2 effects for one id after one run",
	},
	{
		name: "books once more for an older holder",
		maker: func(l *ledger) effect.Effect {
			return idempotent(when(l.good(true), func(ctx context.Context, in effect.Input) (bool, error) {
				if _, token, _ := l.state(in); token <= in.Token || ctx.Err() != nil {
					return false, nil
				}
				l.add(in)
				return true, nil
			}))
		},
		fails: []string{"resumed as a zombie"}, says: "an older holder ran after a newer one: the sink holds 2 effects for one id",
	},
	{
		name: "leaves a refusal unknown",
		maker: func(l *ledger) effect.Effect {
			return atMostOnce(when(l.good(false), func(context.Context, effect.Input) (bool, error) {
				return errors.Is(l.refusal(), errBusy), errBusy
			}))
		},
		fails: []string{"refused for now"}, says: "leaves it unknown (the sink is busy): the record would be parked for a person; if the refusal proves that nothing was applied return effect.Temporary",
	},
	{
		name: "takes a refusal for permanent",
		maker: func(l *ledger) effect.Effect {
			return idempotent(when(l.good(true), func(context.Context, effect.Input) (bool, error) {
				return errors.Is(l.refusal(), errBusy), effect.Permanent(errBusy)
			}))
		},
		fails: []string{"refused for now"}, says: "the record would be a dead letter at once; return effect.Temporary",
	},
	{
		name: "books what it says was refused",
		maker: func(l *ledger) effect.Effect {
			return probed(when(l.good(false), func(_ context.Context, in effect.Input) (bool, error) {
				if !errors.Is(l.refusal(), errBusy) {
					return false, nil
				}
				l.add(in)
				return true, effect.Temporary(errBusy)
			}), l.probe)
		},
		fails: []string{"refused for now"}, says: "but the sink holds it: Temporary and Permanent need proof",
	},
	{
		name: "does not notice a refusal",
		maker: func(l *ledger) effect.Effect {
			return probed(when(l.good(false), func(context.Context, effect.Input) (bool, error) {
				return errors.Is(l.refusal(), errBusy), nil
			}), l.probe)
		},
		fails: []string{"refused for now"}, says: "the effect says applied, but the sink holds nothing",
	},
	{
		name: "does not come back after a refusal",
		maker: func(l *ledger) effect.Effect {
			return atMostOnce(when(l.good(false), func(_ context.Context, in effect.Input) (bool, error) {
				if errors.Is(l.refusal(), errBusy) {
					l.hear(in)
				}
				_, _, heard := l.state(in)
				return heard && l.refusal() == nil, errUnknown
			}))
		},
		fails: []string{"refused for now"}, says: "then took it: the effect says unknown",
	},
	{
		name: "tries a refusal for good again",
		maker: func(l *ledger) effect.Effect {
			return idempotent(when(l.good(true), func(context.Context, effect.Input) (bool, error) {
				return errors.Is(l.refusal(), errUnknown), effect.Temporary(errUnknown)
			}))
		},
		fails: []string{"refused for good"}, says: "tried in vain until the schedule ends; return effect.Permanent",
	},
	{
		name: "leaves a refusal for good unknown",
		maker: func(l *ledger) effect.Effect {
			return probed(when(l.good(true), func(context.Context, effect.Input) (bool, error) {
				return errors.Is(l.refusal(), errUnknown), errUnknown
			}), l.probe)
		},
		fails: []string{"refused for good"}, says: "the record would wait for the probe; if the refusal proves that nothing was applied return effect.Permanent",
	},
	{
		name: "batch says applied about records it skipped",
		maker: func(l *ledger) effect.Effect {
			return effect.AtMostOnceBatch(func(ctx context.Context, in []effect.Input) []effect.Outcome {
				out := each(l.good(false))(ctx, in[:1])
				return append(out, make([]effect.Outcome, len(in)-1)...)
			}, nil)
		},
		fails: []string{"several in one call"}, says: "record 2 of 3: the effect says applied, but the sink holds nothing",
	},
	{
		name: "batch answers too few",
		maker: func(l *ledger) effect.Effect {
			return effect.AtMostOnceBatch(func(ctx context.Context, in []effect.Input) []effect.Outcome {
				return each(l.good(false))(ctx, in)[:1]
			}, nil)
		},
		fails: []string{"several in one call"}, says: "answered 1 outcomes for 3 records",
	},
	{
		name: "batch books the last one for everybody",
		maker: func(l *ledger) effect.Effect {
			return effect.AtLeastOnceBatch(func(ctx context.Context, in []effect.Input) []effect.Outcome {
				same := slices.Repeat(in[len(in)-1:], len(in))
				return each(l.good(false))(ctx, same)
			}, nil)
		},
		fails: []string{"several in one call"}, says: "record 1 of 3: the effect says applied, but the sink holds nothing",
	},
	{
		name: "batch ends its goroutine when there are several",
		maker: func(l *ledger) effect.Effect {
			return effect.AtMostOnceBatch(func(ctx context.Context, in []effect.Input) []effect.Outcome {
				if len(in) > 1 {
					runtime.Goexit()
				}
				return each(l.good(false))(ctx, in)
			}, nil)
		},
		fails: []string{"several in one call"}, says: "runtime.Goexit",
	},
}

// landsLater gives up when its context ends, while its request is on its way.
func landsLater(l *ledger) effect.Func {
	return func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		if err := ctx.Err(); err != nil {
			return effect.Receipt{}, effect.Temporary(err)
		}
		if err := ctx.Err(); err != nil {
			time.AfterFunc(20*time.Millisecond, func() { l.add(in) })
			return effect.Receipt{}, err
		}
		return l.good(false)(context.WithoutCancel(ctx), in)
	}
}

// inMemory makes an effect that dedupes by a map of its own.
func inMemory(l *ledger) func() effect.Effect {
	return func() effect.Effect {
		done := map[string]bool{}
		return idempotent(func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
			if done[in.EffectID] {
				return effect.Receipt{}, nil
			}
			r, err := l.good(false)(ctx, in)
			done[in.EffectID] = err == nil
			return r, err
		})
	}
}

func TestWrongEffectsFailTheRowOfTheirRule(t *testing.T) {
	for _, wrong := range wrongEffects {
		t.Run(wrong.name, func(t *testing.T) {
			l := newLedger()
			report := l.run(t, wrong.maker(l), func(c *effecttest.Config) {
				if wrong.change != nil {
					wrong.change(c)
				}
				if wrong.reborn != nil {
					c.Restart = wrong.reborn(l)
				}
			})
			checkFails(t, report, wrong.fails, wrong.says)
		})
	}
}

// checkFails holds the failed rows against want and looks for says in the last.
func checkFails(t *testing.T, report effecttest.Report, want []string, says string) {
	t.Helper()
	var failed []string
	verdict := ""
	for _, row := range report.Rows {
		if row.Result == effecttest.Failed {
			failed, verdict = append(failed, row.Name), row.Verdict
		}
	}
	if !slices.Equal(failed, want) {
		t.Errorf("failed rows %q, want %q:\n%v", failed, want, report)
	}
	if !strings.Contains(verdict, says) {
		t.Errorf("verdict %q, want it to say %q", verdict, says)
	}
	if err := report.Err(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s: %s", want[len(want)-1], verdict)) {
		t.Errorf("Err = %v, want the row with its verdict", err)
	}
}

func TestEveryRowHasAWrongEffect(t *testing.T) {
	covered := map[string]bool{}
	for _, wrong := range wrongEffects {
		for _, row := range wrong.fails {
			covered[row] = true
		}
	}
	l := newLedger()
	for _, e := range []effect.Effect{idempotent(l.good(true)), effect.AtMostOnceBatch(each(l.good(false)), nil)} {
		for _, row := range l.run(t, e).Rows {
			if !covered[row.Name] {
				t.Errorf("no wrong effect shows what %q is for", row.Name)
			}
		}
	}
}

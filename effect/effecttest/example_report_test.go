package effecttest_test

import (
	"context"
	"fmt"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/effecttest"
)

// The report tells each rule in words, without any test framework.
func ExampleReport_String() {
	mails := map[string]int{}
	send := func(ctx context.Context, in effect.Input) (effect.Receipt, error) {
		if err := ctx.Err(); err != nil {
			return effect.Receipt{}, effect.Temporary(err)
		}
		mails[in.EffectID]++
		return effect.Receipt{}, nil
	}
	fmt.Print(effecttest.Run(context.Background(), effecttest.Config{
		Effect:  effect.AtMostOnce(send, nil),
		Applied: func(_ context.Context, in effect.Input) (int, error) { return mails[in.EffectID], nil },
	}))
	// Output:
	// effect of kind at-most-once
	// passed     first run
	//            rule: a fresh effect id is applied once, and the effect says so
	// passed     context already over
	//            rule: with a context that is over it returns in time; a probed or at-most-once effect then starts nothing at the sink
	// passed     answered late
	//            rule: when its context ends while it runs, what it answers then is true, and the record ends with one effect
	// not tried  refused for now
	//            rule: while the sink refuses it says temporary and nothing is applied; later it is applied once
	//            Config.Refuse is not given: give a function that makes the sink refuse for a while
	// not tried  refused for good
	//            rule: when the sink refuses for good it says permanent and nothing is applied
	//            Config.Reject is not given: give a function that makes the sink refuse for good
}

package effect_test

import (
	"fmt"

	"github.com/oncefence/oncefence/effect"
)

// There is no effect without a kind, and no kind without what it needs.
func ExampleEffect_Validate() {
	fmt.Println(effect.Effect{}.Validate())
	fmt.Println(effect.Probed(nop, cannotSay, effect.ProbedOptions{}).Validate())
	// Output:
	// no effect kind: use effect.Transactional, effect.Idempotent, effect.Probed, effect.AtMostOnce or effect.AtLeastOnce (or their Batch forms)
	// effect.Probed: Settled is not given: say how long after an attempt's end a request can still be worked on by the sink, effect.Immediately if never
}

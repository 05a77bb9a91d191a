package effect_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/effect"
)

// An error says "nothing was applied" only when its author says so.
func ExampleClassify() {
	refused := errors.New("connection refused")
	for _, err := range []error{
		nil,
		effect.Temporary(refused),
		effect.TemporaryAfter(errors.New("busy"), 30*time.Second),
		fmt.Errorf("order 17: %w", effect.Permanent(errors.New("no such customer"))),
		context.DeadlineExceeded,
		errors.Join(effect.Temporary(refused), errors.New("and something else")),
	} {
		class, delay := effect.Classify(err)
		fmt.Println(class, delay)
	}
	// Output:
	// applied 0s
	// temporary 0s
	// temporary 30s
	// permanent 0s
	// unknown 0s
	// unknown 0s
}

package consumertest

import "testing"

// Test checks every rule in a subtest that bears its name.
func Test(t *testing.T, h Harness) {
	t.Helper()
	around := h.Around
	if around == nil {
		around = func(t *testing.T, body func(t *testing.T)) { body(t) }
	}
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			if h.Parallel {
				t.Parallel()
			}
			around(t, func(t *testing.T) {
				skipped, err := rule.run(t.Context(), h)
				if err != nil {
					t.Errorf("broken: %s\n%v", rule.Says, err)
				}
				if skipped != "" {
					t.Logf("not checked: %s: %s", rule.Says, skipped)
				}
			})
		})
	}
}

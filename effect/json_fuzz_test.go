package effect_test

import (
	"context"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/oncefence/oncefence/effect"
)

// Every error is one of these, and nothing in them comes from the payload but
// places.
var undecodableText = regexp.MustCompile(`^undecodable: the payload (` +
	`is nil \(a tombstone\), want JSON for effect_test\.order|` +
	`is (empty|null), want JSON for effect_test\.order|` +
	`is not JSON at byte \d+ of \d+|` +
	`ends inside the JSON value, after \d+ bytes|` +
	`goes on after the JSON value, from byte \d+ of \d+|` +
	`does not fit effect_test\.order( in field (id|cents|placed|lines|lines\.count))?: want (string|int|int64|time\.Time|effect_test\.order|\[\]struct .*|struct .*) at byte \d+ of \d+|` +
	`does not fit effect_test\.order: (it has a field that the type does not have, or )?the type refuses a value \(\*?[a-z]+\.[A-Za-z]+\))$`)

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"id":"A","cents":1}`, `{"id":1}`, `{"cents":"1"}`, `{"cents":1e99}`, `{"lines":[{"count":1.5}]}`, `{"lines":{}}`,
		`[]`, `null`, ``, ` `, `{`, `{}x`, `{} {}`, `"a"`, `{"placed":"now"}`, `{"ID":"A"}`, `{"x":1}`, "\xff", `{"id":"\ud800"}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, payload []byte, strict bool) {
		var got order
		called := false
		var opts []effect.JSONOption
		if strict {
			opts = append(opts, effect.DisallowUnknownFields())
		}
		_, err := effect.JSON(func(_ context.Context, o order, _ effect.Input) (effect.Receipt, error) {
			got, called = o, true
			return effect.Receipt{}, nil
		}, opts...)(t.Context(), effect.Input{Payload: payload})
		if called != (err == nil) {
			t.Fatalf("called %v with error %v", called, err)
		}
		if err != nil {
			if effect.Reason(err) != effect.ReasonUndecodable || !undecodableText.MatchString(err.Error()) {
				t.Errorf("error %q", err)
			}
			return
		}
		var want order
		if err := json.Unmarshal(payload, &want); err != nil {
			t.Fatalf("decoded what encoding/json refuses: %v", err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Errorf("decoded %s, encoding/json %s", a, b)
		}
	})
}

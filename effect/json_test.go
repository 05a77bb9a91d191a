package effect_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
)

type order struct {
	ID     string    `json:"id"`
	Cents  int64     `json:"cents"`
	Placed time.Time `json:"placed"`
	Lines  []struct {
		Count int `json:"count"`
	} `json:"lines"`
}

type fussy struct{}

func (*fussy) UnmarshalJSON(b []byte) error { return errors.New("fussy about " + string(b)) }

type explosive struct{}

func (*explosive) UnmarshalJSON(b []byte) error { panic("exploded on " + string(b)) }

func TestJSONHandsOverTheValue(t *testing.T) {
	f := effect.JSON(func(_ context.Context, o order, in effect.Input) (effect.Receipt, error) {
		if o.ID != "A-17" || o.Cents != 995 || in.Key != "k" {
			t.Errorf("order %+v of %q", o, in.Key)
		}
		return effect.Receipt{EffectID: "b-1"}, errSink
	})
	r, err := f(t.Context(), effect.Input{Key: "k", Payload: []byte(" {\"id\":\"A-17\",\"cents\":995,\"more\":true}\n ")})
	if r.EffectID != "b-1" || !errors.Is(err, errSink) {
		t.Errorf("%+v, %v; want what the function returned", r, err)
	}
}

func TestJSONRefusesWhatItCannotDecode(t *testing.T) {
	// SECRET, 4111 and the like must never be seen in an error.
	tests := []struct {
		name    string
		payload []byte
		strict  bool
		want    string
	}{
		{"tombstone", nil, false, "is nil (a tombstone)"},
		{"empty", []byte{}, false, "is empty"},
		{"white space", []byte(" \n"), false, "is empty"},
		{"null", []byte(" null "), false, "is null"},
		{"not JSON", []byte("SECRET"), false, "not JSON at byte 1 of 6"},
		{"cut off", []byte(`{"id":"SECRET`), false, "ends inside the JSON value, after 13 bytes"},
		{"another value after it", []byte(`{"id":"A"} {"id":"SECRET"}`), false, "goes on after the JSON value"},
		{"garbage after it", []byte(`{"id":"A"} SECRET`), false, "goes on after the JSON value"},
		{"another type", []byte(`{"id":"A","cents":"SECRET"}`), false, "in field cents: want int64"},
		{"number does not fit", []byte(`{"cents":4111.4111}`), false, "in field cents: want int64"},
		{"nested field", []byte(`{"lines":[{"count":4111.4111}]}`), false, "in field lines.count: want int"},
		{"array for struct", []byte(`["SECRET"]`), false, "does not fit effect_test.order"},
		{"the type refuses", []byte(`{"placed":"SECRET"}`), false, "refuses a value"},
		{"unknown field", []byte(`{"SECRET":1}`), true, "a field that the type does not have"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var opts []effect.JSONOption
			if tt.strict {
				opts = append(opts, effect.DisallowUnknownFields())
			}
			f := effect.JSON(func(context.Context, order, effect.Input) (effect.Receipt, error) {
				t.Error("the function was called")
				return effect.Receipt{}, nil
			}, opts...)
			_, err := f(t.Context(), effect.Input{Payload: tt.payload})
			checkUndecodable(t, err, tt.want)
		})
	}
}

func checkUndecodable(t *testing.T, err error, want string) {
	t.Helper()
	if class, _ := effect.Classify(err); class != effect.ClassPermanent || effect.Reason(err) != effect.ReasonUndecodable {
		t.Fatalf("error %v, want undecodable", err)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("error %q, want it to say %q", err, want)
	}
	for _, secret := range []string{"SECRET", "4111"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("error %q shows the payload", err)
		}
	}
	var syntax *json.SyntaxError
	var unfit *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &unfit) {
		t.Error("errors.As reaches an error that may quote the payload")
	}
}

func TestJSONWithTypesThatRefuseOrPanic(t *testing.T) {
	_, err := effect.JSON(func(context.Context, fussy, effect.Input) (effect.Receipt, error) {
		return effect.Receipt{}, nil
	})(t.Context(), effect.Input{Payload: []byte(`"SECRET"`)})
	checkUndecodable(t, err, "does not fit effect_test.fussy")

	_, err = effect.JSON(func(context.Context, explosive, effect.Input) (effect.Receipt, error) {
		return effect.Receipt{}, nil
	})(t.Context(), effect.Input{Payload: []byte(`"SECRET"`)})
	checkUndecodable(t, err, "decoding the payload into effect_test.explosive panicked")
	var p *effect.PanicError
	if !errors.As(err, &p) || len(p.Stack) == 0 {
		t.Errorf("error %v, want the stack of the panic within reach", err)
	}
}

func TestJSONOfNoFunctionIsRefusedByTheConstructor(t *testing.T) {
	single := effect.AtMostOnce(effect.JSON[order](nil), nil)
	batch := effect.AtMostOnceBatch(effect.JSONBatch[order](nil), nil)
	for _, e := range []effect.Effect{single, batch} {
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), "the function is nil") {
			t.Errorf("Validate = %v, want it to miss the function", err)
		}
	}
}

func TestJSONIgnoresNilOptions(t *testing.T) {
	f := effect.JSON(func(context.Context, order, effect.Input) (effect.Receipt, error) { return effect.Receipt{}, nil }, nil)
	if _, err := f(t.Context(), effect.Input{Payload: []byte(`{}`)}); err != nil {
		t.Error(err)
	}
}

func payloads(texts ...string) []effect.Input {
	in := inputs(len(texts))
	for i, text := range texts {
		in[i].Payload = []byte(text)
	}
	return in
}

func TestJSONBatchMapsOutcomesBack(t *testing.T) {
	f := effect.JSONBatch(func(_ context.Context, items []effect.Item[order]) []effect.Outcome {
		if len(items) != 2 || items[0].Value.ID != "A" || items[1].Value.ID != "B" || items[1].Input.Key != "orders:0::3" {
			t.Errorf("items %+v", items)
		}
		return []effect.Outcome{{Receipt: effect.Receipt{EffectID: "for A"}}, {Err: errSink}}
	}, effect.DisallowUnknownFields())
	out := f(t.Context(), payloads(`SECRET`, `{"id":"A"}`, `{"SECRET":1}`, `{"id":"B"}`))
	if len(out) != 4 {
		t.Fatalf("%d outcomes for 4 records", len(out))
	}
	checkUndecodable(t, out[0].Err, "not JSON")
	checkUndecodable(t, out[2].Err, "a field that the type does not have")
	if out[1].Err != nil || out[1].Receipt.EffectID != "for A" {
		t.Errorf("second %+v", out[1])
	}
	if !errors.Is(out[3].Err, errSink) {
		t.Errorf("fourth %+v", out[3])
	}
}

func TestJSONBatchOfNothingDecodable(t *testing.T) {
	f := effect.JSONBatch(func(context.Context, []effect.Item[order]) []effect.Outcome {
		t.Error("called without a record")
		return nil
	})
	for _, o := range f(t.Context(), payloads(`x`, `y`)) {
		checkUndecodable(t, o.Err, "not JSON")
	}
}

func TestJSONBatchWithAWrongAnswer(t *testing.T) {
	short := effect.JSONBatch(func(context.Context, []effect.Item[order]) []effect.Outcome { return nil })
	swapped := effect.JSONBatch(func(_ context.Context, items []effect.Item[order]) []effect.Outcome {
		items[0], items[1] = items[1], items[0]
		return make([]effect.Outcome, len(items))
	})
	for want, f := range map[string]effect.BatchFunc{"answered 0 outcomes for 2 records": short, "changed the order": swapped} {
		out := f(t.Context(), payloads(`{}`, `x`, `{}`))
		checkUndecodable(t, out[1].Err, "not JSON")
		for _, i := range []int{0, 2} {
			if out[i].Class() != effect.ClassUnknown || !strings.Contains(out[i].Err.Error(), want) {
				t.Errorf("record %d: %v, want unknown with %q", i, out[i].Err, want)
			}
		}
	}
}

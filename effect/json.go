package effect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime/debug"
)

// JSONOption changes how JSON and JSONBatch decode.
type JSONOption func(*jsonOptions)

type jsonOptions struct{ strict bool }

// DisallowUnknownFields refuses a payload with a field that the Go type does
// not have, as json.Decoder.DisallowUnknownFields does.
func DisallowUnknownFields() JSONOption {
	return func(o *jsonOptions) { o.strict = true }
}

// JSON makes an effect of a function that takes the payload decoded into a T.
//
// A payload that cannot be decoded never reaches f: the answer is Undecodable,
// so the record becomes a dead letter at once. That is the case for a nil
// payload (a tombstone), an empty one, null, what is not JSON, what does not
// fit T, anything but white space after the value, and a panic of T's own
// UnmarshalJSON. The error names the place and T, never bytes of the payload,
// and errors.As does not reach the error of encoding/json, whose text may show
// them.
func JSON[T any](f func(ctx context.Context, value T, in Input) (Receipt, error), opts ...JSONOption) Func {
	if f == nil {
		return nil // the constructor then says what is missing
	}
	o := jsonOptionsOf(opts)
	return func(ctx context.Context, in Input) (Receipt, error) {
		value, err := decode[T](in.Payload, o)
		if err != nil {
			return Receipt{}, err
		}
		return f(ctx, value, in)
	}
}

func jsonOptionsOf(opts []JSONOption) jsonOptions {
	var o jsonOptions
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}

func decode[T any](payload []byte, o jsonOptions) (value T, err error) {
	name := reflect.TypeFor[T]().String()
	defer func() {
		if v := recover(); v != nil {
			err = &decodePanic{name: name, cause: &PanicError{Where: "decoding", Value: v, Stack: debug.Stack()}}
		}
		if err != nil {
			var zero T
			value, err = zero, Undecodable(err)
		}
	}()
	switch {
	case payload == nil:
		return value, fmt.Errorf("the payload is nil (a tombstone), want JSON for %s", name)
	case len(bytes.TrimSpace(payload)) == 0:
		return value, fmt.Errorf("the payload is empty, want JSON for %s", name)
	case string(bytes.TrimSpace(payload)) == "null":
		return value, fmt.Errorf("the payload is null, want JSON for %s", name)
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	if o.strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(&value); err != nil {
		return value, describe(err, name, len(payload), o.strict)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return value, fmt.Errorf("the payload goes on after the JSON value, from byte %d of %d", dec.InputOffset(), len(payload))
	}
	return value, nil
}

// describe says what encoding/json found without its text, which can quote the
// payload.
func describe(err error, name string, size int, strict bool) error {
	var syntax *json.SyntaxError
	var unfit *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("the payload is not JSON at byte %d of %d", syntax.Offset, size)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("the payload ends inside the JSON value, after %d bytes", size)
	case errors.As(err, &unfit):
		where := ""
		if unfit.Field != "" {
			where = " in field " + unfit.Field
		}
		return fmt.Errorf("the payload does not fit %s%s: want %v at byte %d of %d", name, where, unfit.Type, unfit.Offset, size)
	case strict:
		return fmt.Errorf("the payload does not fit %s: it has a field that the type does not have, or the type refuses a value (%T)", name, err)
	default:
		return fmt.Errorf("the payload does not fit %s: the type refuses a value (%T)", name, err)
	}
}

type decodePanic struct {
	name  string
	cause *PanicError
}

func (e *decodePanic) Error() string {
	return "decoding the payload into " + e.name + " panicked"
}

func (e *decodePanic) Unwrap() error { return e.cause }

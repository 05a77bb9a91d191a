package effect

import "context"

// Item is one record of a JSONBatch with its decoded payload.
type Item[T any] struct {
	Value T
	Input Input
}

// JSONBatch is JSON for a function on several records. Records that cannot be
// decoded are answered with Undecodable, the others go to f in one slice, in
// their order; f answers one outcome for each item of its own slice. f is not
// called when no record is left.
func JSONBatch[T any](f func(ctx context.Context, items []Item[T]) []Outcome, opts ...JSONOption) BatchFunc {
	if f == nil {
		return nil // the constructor then says what is missing
	}
	o := jsonOptionsOf(opts)
	return func(ctx context.Context, in []Input) []Outcome {
		out := NewOutcomes(in)
		items := make([]Item[T], 0, len(in))
		places := make([]int, 0, len(in))
		for i := range in {
			value, err := decode[T](in[i].Payload, o)
			if err != nil {
				out[i].Err = err
				continue
			}
			items = append(items, Item[T]{Value: value, Input: in[i]})
			places = append(places, i)
		}
		if len(items) == 0 {
			return out
		}
		for i, answer := range answerItems(ctx, f, items) {
			out[places[i]] = answer
		}
		return out
	}
}

// answerItems calls f and returns one outcome for each item: a wrong number of
// outcomes, or items that changed places, make all of them unknown.
func answerItems[T any](ctx context.Context, f func(context.Context, []Item[T]) []Outcome, items []Item[T]) []Outcome {
	ids := make([]id, len(items))
	for i := range items {
		ids[i] = idOf(&items[i].Input)
	}
	answer := f(ctx, items)
	if err := checkAnswer(len(ids), len(answer)); err != nil {
		return unknownOutcomes(len(ids), err)
	}
	for i := range ids {
		if idOf(&items[i].Input) != ids[i] {
			return unknownOutcomes(len(ids), reordered(len(ids), i))
		}
	}
	return answer
}

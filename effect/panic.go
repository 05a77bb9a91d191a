package effect

import "fmt"

// PanicError stands in for a panic of the user's function. Its class is
// unknown: the panic may have come after the sink had worked.
type PanicError struct {
	// Where is "effect", "batch effect" or "probe".
	Where string
	// Value is what was panicked with.
	Value any
	// Stack is the stack of the goroutine at the panic.
	Stack []byte
}

// Error shows the value if it is an error or a string, cut at 256 bytes, else
// only its type: a value that was printed whole could show the payload.
func (e *PanicError) Error() string {
	const limit = 256
	var text string
	switch v := e.Value.(type) {
	case error:
		text = v.Error()
	case string:
		text = v
	default:
		text = fmt.Sprintf("a value of type %T", v)
	}
	if len(text) > limit {
		text = text[:limit] + "..."
	}
	return e.Where + " panicked: " + text
}

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

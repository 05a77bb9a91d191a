package effecttest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

type ctx = context.Context

func TestEveryLookIsATouch(t *testing.T) {
	type key struct{}
	looks := 0
	deadline := time.Now().Add(time.Hour)
	inner, cancel := context.WithDeadline(context.WithValue(t.Context(), key{}, "v"), deadline)
	defer cancel()
	c := &touched{inner, func() { looks++ }}
	if d, ok := c.Deadline(); !ok || !d.Equal(deadline) || looks != 1 {
		t.Errorf("Deadline = %v, %v after %d looks", d, ok, looks)
	}
	if c.Done() != inner.Done() || looks != 2 {
		t.Errorf("another Done, %d looks", looks)
	}
	if c.Value(key{}) != "v" || looks != 3 {
		t.Errorf("another Value, %d looks", looks)
	}
	cancel()
	if c.Err() != context.Canceled || looks != 4 { //nolint:errorlint // the very same error
		t.Errorf("Err = %v, %d looks", c.Err(), looks)
	}
}

func TestEndAt(t *testing.T) {
	inner, end := context.WithCancel(t.Context())
	defer end()
	c, reached := endAt(inner, end, 3)
	for look := 1; look <= 4; look++ {
		if over := c.Err() != nil; over != (look >= 3) || reached() != (look >= 3) {
			t.Errorf("look %d: over %v, reached %v", look, over, reached())
		}
	}
}

// A context made from it ends with it.
func TestEndAtEndsDerivedContexts(t *testing.T) {
	inner, end := context.WithCancel(t.Context())
	defer end()
	c, _ := endAt(inner, end, 1)
	child, cancel := context.WithTimeout(c, time.Hour)
	defer cancel()
	<-child.Done()
	if child.Err() != context.Canceled { //nolint:errorlint // the very same error
		t.Errorf("the child ended with %v", child.Err())
	}
}

func TestHoldAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, held, release := holdAt(t.Context())
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- c.Err() }()
		}
		<-held
		synctest.Wait()
		if len(done) != 0 {
			t.Error("a look was not held")
		}
		release()
		release()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("Err = %v", err)
			}
		}
		if err := c.Err(); err != nil {
			t.Errorf("a later look: %v", err)
		}
	})
}

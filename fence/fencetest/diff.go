package fencetest

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/oncefence/oncefence/fence/driver"
)

// diff says in words how got is not want: "token is 4, want 3; ...". Receipts
// and steps are compared by their bytes, nil and empty are the same. Of a key
// without record only the state counts.
func diff(got, want driver.Record) string {
	if got.State == driver.Absent && want.State == driver.Absent {
		return ""
	}
	var out []string
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		name, a, b := g.Type().Field(i).Name, g.Field(i).Interface(), w.Field(i).Interface()
		switch a := a.(type) {
		case *driver.Record:
			if d := diffPrior(a, b.(*driver.Record)); d != "" {
				out = append(out, d)
			}
		case []byte:
			if b := b.([]byte); !bytes.Equal(a, b) {
				out = append(out, fmt.Sprintf("%s has %d bytes, want %d or other ones", name, len(a), len(b)))
			}
		case []driver.Step:
			if d := diffSteps(a, b.([]driver.Step)); d != "" {
				out = append(out, d)
			}
		default:
			if a != b {
				out = append(out, fmt.Sprintf("%s is %v, want %v", name, a, b))
			}
		}
	}
	return strings.Join(out, "; ")
}

func diffPrior(got, want *driver.Record) string {
	switch {
	case got == nil && want == nil:
		return ""
	case got == nil:
		return fmt.Sprintf("the record that the claim found (%v) is not kept", want.State)
	case want == nil:
		return fmt.Sprintf("a record that the claim found (%v) is kept, there was none", got.State)
	}
	if d := diff(*got, *want); d != "" {
		return "in the record that the claim found: " + d
	}
	return ""
}

func diffSteps(got, want []driver.Step) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d journal steps, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].Name != want[i].Name || got[i].Kind != want[i].Kind || !bytes.Equal(got[i].Receipt, want[i].Receipt) {
			return fmt.Sprintf("journal step %d is %q, want %q or another kind or receipt", i, got[i].Name, want[i].Name)
		}
	}
	return ""
}

// equal wants got to be want in every field.
func (s *scene) equal(what string, got, want driver.Record) {
	if d := diff(got, want); d != "" {
		s.failf("%s: %s", what, d)
	}
}

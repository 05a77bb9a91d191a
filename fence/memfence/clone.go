package memfence

import (
	"bytes"
	"slices"

	"github.com/oncefence/oncefence/fence/driver"
)

// clone copies r so that neither side sees the other's later changes. An empty
// slice becomes nil, as in stores that keep bytes.
func clone(r *driver.Record) driver.Record {
	c := *r
	c.Receipt = cloneBytes(r.Receipt)
	c.Steps = nil
	if len(r.Steps) > 0 {
		c.Steps = slices.Clone(r.Steps)
		for i := range c.Steps {
			c.Steps[i].Receipt = cloneBytes(c.Steps[i].Receipt)
		}
	}
	if r.Prior != nil {
		prior := clone(r.Prior)
		c.Prior = &prior
	}
	return c
}

func cloneBytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return bytes.Clone(b)
}

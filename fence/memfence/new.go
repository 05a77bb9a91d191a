package memfence

import "github.com/oncefence/oncefence/fence"

// Options sets up a store. nil and the zero Options are fine.
type Options struct {
	// Fence holds the options of the fence that New returns; nil means its
	// defaults. NewStore does not read it.
	Fence *fence.Options
}

// New makes a fence over an empty store. Its Close forgets all records.
func New(opts *Options) (*fence.Fence, error) {
	var fenceOptions *fence.Options
	if opts != nil {
		fenceOptions = opts.Fence
	}
	return fence.New(NewStore(opts), fenceOptions)
}

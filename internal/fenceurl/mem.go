package fenceurl

import (
	"errors"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/memfence"
)

func openMem(opts *Options) (*fence.Fence, error) {
	if opts.MustExist {
		return nil, errors.New("a fence in memory lives in its own process: there is nothing to read from here")
	}
	return memfence.New(&memfence.Options{Fence: opts.Fence})
}

package fenceurl

import (
	"errors"
	"fmt"
	"os"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/boltfence"
)

// openBolt takes everything after bolt: as the path.
func openBolt(path string, opts *Options) (*fence.Fence, error) {
	if path == "" {
		return nil, errors.New("the path is missing: bolt:PATH")
	}
	if opts.MustExist {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("there is no fence to read: %w", err)
		}
	}
	return boltfence.Open(path, &boltfence.Options{Fence: opts.Fence})
}

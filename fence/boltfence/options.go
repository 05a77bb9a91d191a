package boltfence

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/oncefence/oncefence/fence"
)

// DefaultTimeout is how long Open waits for a file that is open elsewhere.
const DefaultTimeout = time.Second

// Options of a store. nil and the zero Options mean the defaults.
type Options struct {
	// Timeout is how long to wait while another process has the file open; 0 is
	// DefaultTimeout (1 s), negative waits for ever.
	Timeout time.Duration
	// NoSync leaves out the fsync. What was answered then survives the process,
	// but a crash of the machine loses it and may break the whole file. The grade
	// says so.
	NoSync bool
	// Fence holds the options of the fence that Open returns; nil means its
	// defaults. OpenStore does not read it.
	Fence *fence.Options
}

// Open opens the file at path, which is made if it is not there (its folder
// is not), and wraps it in a fence. It fails when another process keeps the
// file open, and for a file that is not a fence or has another format; the
// error names the file.
func Open(path string, opts *Options) (*fence.Fence, error) {
	store, err := OpenStore(path, opts)
	if err != nil {
		return nil, err
	}
	var fenceOptions *fence.Options
	if opts != nil {
		fenceOptions = opts.Fence
	}
	f, err := fence.New(store, fenceOptions)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return f, nil
}

// mapSize is the part of the address space that is set aside for the file at
// first: until the file has grown to it no write waits for readers. Windows would
// make the file that large.
func mapSize() int {
	if runtime.GOOS == "windows" || strconv.IntSize < 64 {
		return 0
	}
	return 1 << 30
}

func openFile(path string, opts *Options) (*bbolt.DB, error) {
	if path == "" {
		return nil, errors.New("open fence file: the path is empty")
	}
	timeout := opts.Timeout
	switch {
	case timeout == 0:
		timeout = DefaultTimeout
	case timeout < 0:
		timeout = 0 // bbolt waits for ever
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: timeout, NoSync: opts.NoSync, FreelistType: bbolt.FreelistMapType, InitialMmapSize: mapSize(), NoStatistics: true,
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("open fence file %s: another process has it open (waited %v): a bolt fence serves one process, give each its own file or use a server as store: %w", path, timeout, err)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return nil, fmt.Errorf("open fence file %s: it is not a bbolt file, or it is damaged: %w", path, err)
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("open fence file %s: make its folder first: %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("open fence file %s: %w", path, err)
	}
	if err := checkFormat(db); err != nil {
		return nil, errors.Join(fmt.Errorf("open fence file %s: %w", path, err), db.Close())
	}
	return db, nil
}

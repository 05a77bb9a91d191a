package boltfence

import "syscall"

// inMemory reports whether path is on a file system that a machine's end
// empties.
func inMemory(path string) bool {
	const tmpfs, ramfs = 0x01021994, 0x858458f6
	var fs syscall.Statfs_t
	if syscall.Statfs(path, &fs) != nil {
		return false
	}
	kind := uint32(fs.Type) //nolint:unconvert // its size differs between architectures
	return kind == tmpfs || kind == ramfs
}

package servers

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const workdirPrefix = "oncefence-servers-"

var sweepOnce sync.Once

// workdir makes a temporary folder for one server. Folders that killed
// processes left behind an hour or longer ago are removed on the way.
func workdir(kind string) (string, error) {
	sweepOnce.Do(func() { sweep(os.TempDir(), time.Now().Add(-time.Hour)) })
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-%s-", workdirPrefix, os.Getpid(), kind))
	if err != nil {
		return "", fmt.Errorf("make a temporary folder: %w", err)
	}
	return dir, nil
}

// sweep removes the folders below dir that belong to dead processes and have
// not changed since before.
func sweep(dir string, before time.Time) {
	found, _ := filepath.Glob(filepath.Join(dir, workdirPrefix+"*")) // fails only on a bad pattern
	for _, path := range found {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), workdirPrefix), "-")
		pid, err := strconv.Atoi(number)
		if err != nil || alive(pid) {
			continue
		}
		if info, err := os.Lstat(path); err == nil && info.ModTime().Before(before) {
			_ = os.RemoveAll(path) // another user's: not ours to remove
		}
	}
}

// freePorts returns n loopback ports that were free a moment ago.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // does not block
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close() // kept until all are found, so that they differ
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

package servers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

func TestSweep(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing is swept where the living cannot be told from the dead")
	}
	ended := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dead, mine := ended.Process.Pid, os.Getpid()
	dir := t.TempDir()
	hour := time.Now().Add(-time.Hour)
	for name, kept := range map[string]bool{
		fmt.Sprintf("%s%d-kafka-old", workdirPrefix, dead):   false,
		fmt.Sprintf("%s%d-kafka-fresh", workdirPrefix, dead): true,
		fmt.Sprintf("%s%d-kafka-old", workdirPrefix, mine):   true,
		workdirPrefix + "unreadable-old":                     true,
		"someone-elses-old":                                  true,
	} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(path) == "" && path[len(path)-3:] == "old" {
			if err := os.Chtimes(path, hour, hour); err != nil {
				t.Fatal(err)
			}
		}
		sweep(dir, time.Now().Add(-time.Minute))
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) == kept {
			t.Errorf("%s: kept %v, want %v", name, !kept, kept)
		}
	}
}

func TestFreePortsDiffer(t *testing.T) {
	ports, err := freePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if n := len(slices.Compact(ports)); n != 20 {
		t.Errorf("%d different ports, want 20", n)
	}
}

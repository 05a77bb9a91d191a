package boltfence

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/oncefence/oncefence/fence/driver"
)

// TestFsyncFails puts /dev/null in the place of the file's descriptor: there
// writes get lost and fsync fails.
func TestFsyncFails(t *testing.T) {
	store := openInternal(t)
	wantAll(t, store.Claim(t.Context(), "ns", ask("before", 20)), driver.New)
	fd := descriptor(t, store.path)
	kept, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for round := range 3 {
		if err := syscall.Dup3(int(null.Fd()), fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint("lost ", round)
		for i, c := range store.Claim(t.Context(), "ns", ask(name, 20)) {
			if c.Err == nil || !strings.Contains(c.Err.Error(), "nothing was written") || c.Answer != driver.NoAnswer {
				t.Errorf("claim %d with a failing disk: %v, %v", i, c.Answer, c.Err)
			}
		}
		if err := syscall.Dup3(kept, fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		keys := append(ask(name, 1), ask("before", 1)...)
		records, err := store.Get(t.Context(), "ns", []driver.Digest{keys[0].Key, keys[1].Key})
		if err != nil || records[0].State != driver.Absent || records[1].State != driver.Pending {
			t.Fatalf("after the failure: %v, %v, %v", records[0].State, records[1].State, err)
		}
		wantAll(t, store.Claim(t.Context(), "ns", ask(fmt.Sprint("healed ", round), 500)), driver.New)
	}
	if err := syscall.Close(kept); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store, err = OpenStore(store.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	n := 0
	if err := store.Scan(t.Context(), "ns", driver.Filter{}, func(driver.Digest, driver.Record) bool { n++; return true }); err != nil || n != 1520 {
		t.Errorf("the file has %d records, want 1520: %v", n, err)
	}
}

// descriptor finds the open file by its path.
func descriptor(t *testing.T, path string) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range open {
		if target, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && target == path {
			var fd int
			if _, err := fmt.Sscan(entry.Name(), &fd); err != nil {
				t.Fatal(err)
			}
			return fd
		}
	}
	t.Fatalf("%s is not open", path)
	return 0
}

package fenceurl

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
)

func TestMemOpensAndCloses(t *testing.T) {
	f, err := Open(t.Context(), "mem:")
	if err != nil {
		t.Fatal(err)
	}
	ns, err := fence.NewNamespace(fence.Nil, "billing")
	if err != nil {
		t.Fatal(err)
	}
	records, err := f.Store().Get(t.Context(), ns.Text(), []driver.Digest{fence.IndexKey("a").Digest()})
	if err != nil || len(records) != 1 || records[0].State != driver.Absent {
		t.Errorf("an empty fence answers %v, %v", records, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestFenceOptionsAreHandedOn(t *testing.T) {
	f, err := OpenWith(t.Context(), "mem:", &Options{Fence: &fence.Options{Endless: true}})
	if err != nil {
		t.Fatal(err)
	}
	if f.Retention() != 0 {
		t.Errorf("retention %v, want none", f.Retention())
	}
	if _, err := OpenWith(t.Context(), "mem:", &Options{Fence: &fence.Options{Retention: -1}}); err == nil {
		t.Error("a negative retention passed")
	}
}

// closedPort is a loopback address where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return addr
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	cases := []struct{ raw, why string }{
		{"", "this is no URL: use mem:, bolt:PATH, redis://"},
		{"fence.db", "this is no URL"},
		{"mysql://root:secret@db/x", "there is no mysql fence: use mem:, bolt:PATH, redis://"},
		{"mem:x", "mem: takes nothing after the colon"},
		{"bolt:", "the path is missing"},
		{"redis:", "redis://HOST:PORT"},
		{"redis://", "redis://HOST:PORT"},
		{"redis:u:secret@h", "redis://HOST:PORT"},
		{"redis://u:sec/ret@h", "escape what is special in a password"},
		{"redis://h/notanumber", "database number"},
		{"redis://h?nope=1", "nope"},
		{"redis://h?cluster=maybe", "cluster=maybe is neither true nor false"},
		{"redis://h?buckets=x", "buckets=x is not a number"},
		{"redis://h?buckets=999", "Buckets is 999"},
		{"redis://h?cluster=true&read_only=true", "replicas"},
		{"redis://u:secret@" + closedPort(t), "the server cannot be used"},
	}
	for _, c := range cases {
		f, err := Open(t.Context(), c.raw)
		if err == nil {
			t.Errorf("%s: opened", c.raw)
			_ = f.Close()
			continue
		}
		if !strings.Contains(err.Error(), c.why) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec/ret") {
			t.Errorf("%s: %v, want %q and no password", c.raw, err, c.why)
		}
	}
}

func TestBoltKeepsWhatWasWritten(t *testing.T) {
	url := "bolt:" + filepath.Join(t.TempDir(), "fence.db")
	mustExist := &Options{MustExist: true}
	if _, err := OpenWith(t.Context(), url, mustExist); err == nil || !strings.Contains(err.Error(), "there is no fence to read") {
		t.Errorf("a missing file: %v", err)
	}
	first := epoch(t, url, nil)
	if again := epoch(t, url, mustExist); again != first {
		t.Errorf("epoch %x after the file was opened again, %x before", again, first)
	}
}

// epoch opens the fence and a namespace in it, and closes both.
func epoch(t *testing.T, url string, opts *Options) [16]byte {
	t.Helper()
	f, err := OpenWith(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := fence.NewNamespace(fence.Nil, "billing")
	if err != nil {
		t.Fatal(err)
	}
	space, err := f.Open(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(space.Close(t.Context()), f.Close()); err != nil {
			t.Error(err)
		}
	}()
	return space.Epoch()
}

func TestBoltServesOneProcess(t *testing.T) {
	url := "bolt:" + filepath.Join(t.TempDir(), "fence.db")
	f, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Open(t.Context(), url); err == nil || !strings.Contains(err.Error(), "another process has it open") {
		t.Errorf("opened twice: %v", err)
	}
}

func TestMustExistRefusesMemory(t *testing.T) {
	if _, err := OpenWith(t.Context(), "mem:", &Options{MustExist: true}); err == nil || !strings.Contains(err.Error(), "nothing to read") {
		t.Errorf("%v", err)
	}
}

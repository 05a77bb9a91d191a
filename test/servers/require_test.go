package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// recorder is a test that records how it ended.
type recorder struct {
	testing.TB
	skip, fatal string
}

func (r *recorder) Helper()          {}
func (r *recorder) Name() string     { return "TestRecorded" }
func (r *recorder) Skip(args ...any) { r.skip = fmt.Sprint(args...); runtime.Goexit() }

func (r *recorder) Fatal(args ...any) { r.fatal = fmt.Sprint(args...); runtime.Goexit() }

// outcome runs require as a test would and returns how that test ended.
func outcome(err error) *recorder {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		require(r, err)
	}()
	<-done
	return r
}

func TestRequireSkipsLoudly(t *testing.T) {
	report := filepath.Join(t.TempDir(), "skips")
	t.Setenv("ONCEFENCE_SKIPS", report)
	t.Setenv("CI", "")
	before := skipped.Load()
	defer skipped.Store(before)
	real := terminal
	terminal = filepath.Join(t.TempDir(), "no-terminal")
	defer func() { terminal = real }()

	missing := fmt.Errorf("%w: redis: program: install it", ErrMissing)
	first, second := outcome(missing), outcome(missing)
	for i, r := range []*recorder{first, second} {
		want := fmt.Sprintf("SKIPPED FOR LACK OF A SERVER (%d so far): TestRecorded", before+int64(i)+1)
		if !strings.HasPrefix(r.skip, want) || !strings.Contains(r.skip, "install it") || r.fatal != "" {
			t.Errorf("skip %d: %+v, want words that begin with %q and say what to install", i, r, want)
		}
	}
	said, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if string(said) != first.skip+"\n"+second.skip+"\n" {
		t.Errorf("the report says %q", said)
	}
}

func TestRequireFails(t *testing.T) {
	broken := errors.New("does not start")
	for name, c := range map[string]struct {
		ci  string
		err error
	}{
		"missing in CI":   {"true", ErrMissing},
		"broken in CI":    {"true", broken},
		"broken anywhere": {"", broken},
	} {
		t.Setenv("CI", c.ci)
		if r := outcome(c.err); r.fatal != c.err.Error() || r.skip != "" {
			t.Errorf("%s: %+v, want a failure", name, r)
		}
	}
	t.Setenv("CI", "true")
	if r := outcome(nil); r.fatal != "" || r.skip != "" {
		t.Errorf("no error: %+v", r)
	}
}

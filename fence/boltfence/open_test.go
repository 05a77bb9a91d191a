package boltfence_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncefence/oncefence/fence/boltfence"
	"github.com/oncefence/oncefence/fence/driver"
)

func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q does not say %q", err, word)
		}
	}
}

func TestSecondOpenerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence.bolt")
	open(t, path, nil)
	for _, timeout := range []time.Duration{0, 100 * time.Millisecond} {
		begin := time.Now()
		_, err := boltfence.OpenStore(path, &boltfence.Options{Timeout: timeout})
		wantError(t, err, path, "another process has it open")
		if waited := time.Since(begin); waited > 10*time.Second {
			t.Errorf("with a timeout of %v it gave up after %v", timeout, waited)
		}
	}
}

func TestReopenAfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence.bolt")
	store := open(t, path, nil)
	keys := numbered(1, 10)
	c, held := hold(t, store, keys)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = open(t, path, nil)
	if got := states(t, store, keys); got[driver.Pending] != 10 {
		t.Fatalf("after reopening: %v", got)
	}
	_, later := hold(t, store, numbered(2, 1))
	if later[0].Record.Token <= held[9].Record.Token {
		t.Errorf("token %d after reopening follows %d", later[0].Record.Token, held[9].Record.Token)
	}
	for i, a := range store.Apply(t.Context(), namespace, seals(c, held, time.Hour)) {
		if a.Outcome != driver.OK || a.Err != nil {
			t.Errorf("seal %d by a holder from before: %v, %v", i, a.Outcome, a.Err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, fill func(tx *bbolt.Tx) error) string {
		path := filepath.Join(dir, name)
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(fill), db.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bucket := func(name, key, value string) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			return b.Put([]byte(key), []byte(value))
		}
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a bolt file\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, words := range map[string][]string{
		write("newer", bucket("oncefence", "format", "2")): {`format is "2"`, "reads 1"},
		write("foreign", bucket("users", "a", "b")):        {"another program", `"users"`},
		text:                            {"not a bbolt file"},
		filepath.Join(dir, "none", "a"): {"make its folder first"},
		dir:                             {"open fence file"},
		"":                              {"path is empty"},
	} {
		_, err := boltfence.OpenStore(path, nil)
		wantError(t, err, append(words, path)...)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder was made")
	}
}

func TestOpenGivesAFence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence.bolt")
	f, err := boltfence.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path, nil)
}

func TestGrade(t *testing.T) {
	for name, c := range map[string]struct {
		opts *boltfence.Options
		want driver.Level
		says string
	}{
		"fsync":    {nil, driver.GradeMachine, "fsync before each answer"},
		"no fsync": {&boltfence.Options{NoSync: true}, driver.GradeRestart, "no fsync"},
	} {
		path := filepath.Join(t.TempDir(), "fence.bolt")
		grade, err := open(t, path, c.opts).Grade(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(grade.Detail, "in memory") {
			c.want, c.says = driver.GradeRestart, "file system in memory"
		}
		if grade.Level != c.want || !strings.Contains(grade.Detail, c.says) || !strings.Contains(grade.Detail, path) {
			t.Errorf("%s: %v, %q", name, grade.Level, grade.Detail)
		}
	}
}

func TestMarkerSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence.bolt")
	store := open(t, path, nil)
	tp := driver.TopicPartition{Topic: "orders", Partition: 3}
	first := driver.Marker{Epoch: [16]byte{1}, Format: 1, Partitions: map[string]int32{"orders": 12}, Committed: map[driver.TopicPartition]int64{tp: 7}}
	if _, err := store.Marker(t.Context(), namespace, first); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, path, nil).Marker(t.Context(), namespace, driver.Marker{Epoch: [16]byte{2}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Epoch != first.Epoch || got.Format != 1 || got.Partitions["orders"] != 12 || got.Committed[tp] != 7 {
		t.Errorf("after reopening: %+v", got)
	}
}

func TestLongNamespaceIsRefused(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "fence.bolt"), nil)
	long := strings.Repeat("n", bbolt.MaxKeySize)
	out := store.Claim(t.Context(), long, claims(numbered(1, 2)))
	for i := range out {
		wantError(t, out[i].Err, "at most")
	}
	_, err := store.Get(t.Context(), long, numbered(1, 1))
	wantError(t, err, "at most")
}

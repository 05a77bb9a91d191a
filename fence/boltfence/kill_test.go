package boltfence_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncefence/oncefence/fence/boltfence"
	"github.com/oncefence/oncefence/fence/driver"
)

const (
	childEnv  = "BOLTFENCE_TEST_CHILD"
	killBatch = 200
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		go func() { // the child dies with its parent
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(3)
		}()
		if err := writeForEver(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// writeForEver claims and seals batch after batch and says on standard output
// what was answered: "<first batch it found free>", then "c<n>" and "s<n>".
func writeForEver(path string) error {
	store, err := boltfence.OpenStore(path, nil)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for batch := 0; ; batch++ {
		c := claims(numbered(batch, killBatch))
		held := store.Claim(ctx, namespace, c)
		granted := 0
		for i := range held {
			if held[i].Err != nil {
				return held[i].Err
			}
			if held[i].Answer.Granted() {
				granted++
			}
		}
		switch granted {
		case 0:
			continue // of an earlier child
		case killBatch:
		default:
			return fmt.Errorf("batch %d: %d of %d keys were free", batch, granted, killBatch)
		}
		fmt.Printf("c %d %d\n", batch, held[0].Record.Token)
		for _, a := range store.Apply(ctx, namespace, seals(c, held, time.Hour)) {
			if a.Err != nil || a.Outcome != driver.OK {
				return fmt.Errorf("batch %d: seal: %v, %w", batch, a.Outcome, a.Err)
			}
		}
		fmt.Printf("s %d %d\n", batch, held[0].Record.Token)
	}
}

// TestKill kills a writer in the middle of its batches, again and again. What
// it was answered is there, no batch is there in part, and tokens grow.
func TestKill(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fence.bolt")
	answered := map[int]driver.State{}
	var lastToken uint64
	for round := range 6 {
		cmd := exec.CommandContext(t.Context(), exe)
		cmd.Env = append(os.Environ(), childEnv+"="+path)
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		for n := 0; lines.Scan(); n++ {
			var word string
			var batch int
			var token uint64
			if _, err := fmt.Sscan(lines.Text(), &word, &batch, &token); err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			answered[batch] = driver.Pending
			if word == "s" {
				answered[batch] = driver.Done
			} else if token <= lastToken {
				t.Errorf("token %d follows %d", token, lastToken)
			}
			lastToken = max(lastToken, token)
			if n == 5+round { // now and then between a claim and its seal
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("the child ended by itself: %v", err)
		}
		_ = stdin.Close()
		checkFile(t, path, answered)
	}
}

func checkFile(t *testing.T, path string, answered map[int]driver.State) {
	t.Helper()
	store, err := boltfence.OpenStore(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for batch := range len(answered) + 1 { // the last one may be there unanswered
		got := states(t, store, numbered(batch, killBatch))
		if len(got) != 1 {
			t.Errorf("batch %d is there in part: %v", batch, got)
		}
		want, said := answered[batch]
		if said && got[driver.Done] == 0 && (want == driver.Done || got[driver.Pending] == 0) {
			t.Errorf("batch %d was answered as %v, the file has %v", batch, want, got)
		}
		if !said && got[driver.Pending] > 0 {
			answered[batch] = driver.Pending
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bbolt.Tx) error {
		var all []error
		for err := range tx.Check() {
			all = append(all, err)
		}
		return errors.Join(all...)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Error(err)
	}
}

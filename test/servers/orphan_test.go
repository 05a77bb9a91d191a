package servers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// startOrphan starts a Redis, prints its address and waits to be killed.
func startOrphan() {
	s, err := StartRedis(context.Background(), &RedisOptions{From: Program, Own: true})
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println(s.Addr())
	select {}
}

// A program dies with the process that started it, even when that is killed.
func TestProgramDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only the Linux kernel promises this, and the documentation says so")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		require(t, fmt.Errorf("%w: redis: program: %w", ErrMissing, err))
	}
	parent := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	parent.Env = append(os.Environ(), orphanVariable+"=1", "TMPDIR="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimSpace(line)
	orphan := newRedis(Program, addr, leave)
	if err := pingRedis(t.Context(), orphan); err != nil {
		t.Fatalf("%s: %v", addr, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	gone := func(ctx context.Context) error {
		if pingRedis(ctx, orphan) == nil {
			return fmt.Errorf("%s still answers", addr)
		}
		return nil
	}
	if err := poll(ctx, neverEnds, gone); err != nil {
		t.Error(err)
	}
}

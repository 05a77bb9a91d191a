package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/internal/fenceurl"
)

// childEnv holds a consumer process's settings; its presence makes this program
// one.
const childEnv = "ORDERS_CONSUMER_CHILD"

// runChild is the consumer process. It ends cleanly when its parent says stop,
// and at once when its parent is gone.
func runChild(raw string) error {
	var cfg settings
	if err := json.Unmarshal([]byte(raw), &cfg); err != nil {
		return fmt.Errorf("%s: %w", childEnv, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		if word, _ := bufio.NewReader(os.Stdin).ReadString('\n'); word != "stop\n" {
			os.Exit(3) // the parent has died
		}
		stop()
	}()
	store, err := fenceurl.Open(ctx, cfg.Fence)
	if err != nil {
		return err
	}
	counting, done, streamed := newStats(), make(chan struct{}), make(chan struct{})
	go func() { defer close(streamed); counting.stream(os.Stdout, done) }()
	err = runMembers(ctx, cfg, store, counting)
	close(done)
	<-streamed
	return errors.Join(err, store.Close())
}

// runMembers runs the consumers of one process until ctx ends.
func runMembers(ctx context.Context, cfg settings, store *fence.Fence, counting *stats) error {
	client, err := newPayments(cfg.Provider)
	if err != nil {
		return err
	}
	charge, err := client.effect(cfg.Kind)
	if err != nil {
		return err
	}
	var wait sync.WaitGroup
	errs := make([]error, cfg.Members)
	for i := range cfg.Members {
		member := cfg
		if cfg.Members > 1 {
			member.Instance = fmt.Sprintf("%s-%d", cfg.Instance, i)
		}
		wait.Go(func() { errs[i] = consume(ctx, member, store, charge, counting) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// child is a consumer process, as its parent sees it.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	last  counts
	mu    sync.Mutex
	ended chan struct{}
	err   error
}

func startChild(cfg settings, log io.Writer) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self), ended: make(chan struct{})} //nolint:noctx // it is ended by its parent's word or death
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
	c.cmd.Stderr = log
	dieWithParent(c.cmd)
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a consumer: %w", err)
	}
	go func() {
		defer close(c.ended)
		decoder := json.NewDecoder(stdout)
		for {
			var got counts
			if decoder.Decode(&got) != nil {
				break
			}
			c.mu.Lock()
			c.last = got
			c.mu.Unlock()
		}
		c.err = c.cmd.Wait()
	}()
	return c, nil
}

func (c *child) counts() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// kill ends the process without a word and waits for it.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // gone already is as good
	<-c.ended
}

// stop ends the process cleanly and returns how it ended.
func (c *child) stop() error {
	_, _ = io.WriteString(c.stdin, "stop\n") // gone already shows in ended
	<-c.ended
	return c.err
}

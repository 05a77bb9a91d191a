package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// server is a program that this process, or package servers for it, has started:
// it can be killed and started again as it was.
type server struct {
	what string
	path string // of the program; argv[0] may say another name, and mean it
	argv []string
	dir  string
	pid  int
	cmd  *exec.Cmd // nil while it is the one that package servers has started
	log  *os.File
	done chan struct{}
}

// findServers looks among this process's children for those whose command line
// contains word.
func findServers(what, word string) (found []*server, err error) {
	pids, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, dir := range pids {
		raw, err := os.ReadFile(dir + "/cmdline")
		if err != nil || !bytes.Contains(raw, []byte(word)) {
			continue
		}
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		cwd, err := os.Readlink(dir + "/cwd")
		if err != nil {
			return nil, err
		}
		argv := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
		path, err := os.Readlink(dir + "/exe")
		if err != nil {
			return nil, err
		}
		found = append(found, &server{what: what, path: path, argv: argv, dir: cwd, pid: pid})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no %s among the children of this process", what)
	}
	return found, nil
}

// kill ends it without a word, and returns when it is gone.
func (s *server) kill() error {
	if err := syscall.Kill(s.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s %d: %w", s.what, s.pid, err)
	}
	return s.gone()
}

// stop asks it to end, and returns when it is gone.
func (s *server) stop() error {
	if err := syscall.Kill(s.pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop %s %d: %w", s.what, s.pid, err)
	}
	return s.gone()
}

func (s *server) gone() error {
	if s.done != nil {
		<-s.done
		return nil
	}
	// Package servers waits for its own child.
	return until(func() bool { return errors.Is(syscall.Kill(s.pid, 0), syscall.ESRCH) })
}

// start runs it again as it was. It dies with this process.
func (s *server) start() error {
	if s.log == nil {
		var err error
		if s.log, err = os.OpenFile(filepath.Join(s.dir, "log.again"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
			return err
		}
	}
	cmd := exec.Command(s.path) //nolint:noctx // close ends it
	cmd.Args = s.argv
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, s.log, s.log
	cmd.SysProcAttr = deathSignal()
	done, started := make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread() // the death signal is tied to the thread
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it was killed
			close(done)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", s.what, err)
	}
	s.cmd, s.pid, s.done = cmd, cmd.Process.Pid, done
	return nil
}

// close ends what was started again.
func (s *server) close() error {
	if s.cmd == nil {
		return nil
	}
	err := s.kill()
	return errors.Join(err, s.log.Close())
}

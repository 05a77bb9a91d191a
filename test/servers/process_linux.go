package servers

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is a user of this machine.
type account struct{ uid, gid int }

// bindLife makes the kernel send a signal to the child when this process dies,
// SIGKILL by default, keeps the terminal's interrupts from it, and sets its
// user.
func bindLife(cmd *exec.Cmd, orphan os.Signal, as *account) {
	sig, ok := orphan.(syscall.Signal)
	if !ok {
		sig = syscall.SIGKILL
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: sig, Setpgid: true}
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
}

// unprivileged names whom to run a program as that refuses root: nil when this
// process is not root itself.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	var errs []error
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return nil, err
		}
		return &account{uid, gid}, nil
	}
	return nil, errors.Join(errs...)
}

// alive tells whether a process of this id exists.
func alive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

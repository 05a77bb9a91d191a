package member

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets the kernel kill the child when its parent dies; elsewhere
// the child notices its closed standard input.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

//go:build !linux

package chaos

import "syscall"

func deathSignal() *syscall.SysProcAttr { return nil }

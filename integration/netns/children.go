package netns

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// Spawn starts cmd so that the kernel kills it when this process dies, however
// it dies: a test that runs into its time limit runs no clean-up.
func Spawn(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// An interrupt from the terminal is for this process, which then stops its
	// children in order.
	cmd.SysProcAttr.Setpgid = true
	result := make(chan error, 1)
	spawner() <- spawn{cmd, result}
	return <-result
}

type spawn struct {
	cmd    *exec.Cmd
	result chan<- error
}

// spawner starts all children from one thread that lives as long as the process,
// because the kernel takes the death of the thread for that of the parent.
var spawner = sync.OnceValue(func() chan<- spawn {
	requests := make(chan spawn)
	go func() {
		runtime.LockOSThread()
		for r := range requests {
			r.result <- r.cmd.Start()
		}
	}()
	return requests
})

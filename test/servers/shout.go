package servers

import (
	"fmt"
	"os"
	"sync"
)

var (
	shouting sync.Mutex
	terminal = "/dev/tty" // of this process, if it has one; tests change it
)

// shout says something that must not go unseen. go test keeps what a passing
// package prints to itself, so the words also go to the terminal, if there is
// one, and to the file that ONCEFENCE_SKIPS names, which make test shows at the
// end.
func shout(words string) {
	shouting.Lock()
	defer shouting.Unlock()
	fmt.Fprintln(os.Stderr, words)
	for path, flag := range map[string]int{terminal: 0, os.Getenv("ONCEFENCE_SKIPS"): os.O_APPEND | os.O_CREATE} {
		if path == "" {
			continue
		}
		if f, err := os.OpenFile(path, os.O_WRONLY|flag, 0o644); err == nil {
			_, _ = fmt.Fprintln(f, words) // nobody is left to tell
			f.Close()
		}
	}
}

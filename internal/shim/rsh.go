package shim

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Rsh is the hidden command "gangrun rsh NODE COMMAND...", which mpirun runs in place of ssh to
// start a daemon on NODE. The agent of that host starts the daemon. Rsh waits until the daemon
// has ended, and returns its exit code.
func Rsh(args []string) int {
	for len(args) > 0 && args[0] == "-x" {
		args = args[1:]
	}
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "gangrun: rsh: this command is for gangrun's own use")
		return 64
	}
	conn, err := dial(Greeting{Node: args[0], Command: []byte(strings.Join(args[1:], " "))})
	if err != nil {
		fmt.Fprintln(os.Stderr, "gangrun: rsh:", err)
		return 70
	}
	defer conn.Close()
	go func() { // the goroutine ends with the process
		_, _ = io.Copy(conn, os.Stdin)
		_ = unix.Shutdown(int(conn.Fd()), unix.SHUT_WR)
	}()
	var end struct{ Code int }
	if err := json.NewDecoder(conn).Decode(&end); err != nil {
		return 70 // the agent is gone
	}
	return end.Code
}

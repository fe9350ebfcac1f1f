package contain

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/exact"
)

// Main is the hidden command "gangrun contain REQUEST WORD ...". It enters the view and becomes
// "gangrun WORD ...". Main returns only if that fails: it reports the reason on ReportFD and
// returns an exit code.
func Main(program string, args []string) int {
	runtime.LockOSThread() // each thread has its own capabilities
	report := os.NewFile(ReportFD, "report")
	unix.CloseOnExec(ReportFD)
	err := become(program, args)
	var why *Error
	if !errors.As(err, &why) {
		why = &Error{Step: "start", Text: err.Error()}
	}
	data, _ := exact.Marshal(why)
	if _, err := report.Write(data); err != nil {
		fmt.Fprintln(os.Stderr, "gangrun: error:", why)
		fmt.Fprintln(os.Stderr, "gangrun: hint: this command is for gangrun's own use")
	}
	return 70
}

func become(program string, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("want a request and words, got %d arguments", len(args))
	}
	var r Request
	if err := exact.Unmarshal([]byte(args[0]), &r); err != nil {
		return fmt.Errorf("a request that cannot be decoded: %w", err)
	}
	if err := Enter(r); err != nil {
		return err
	}
	// The memory of the layer belongs to no process. If memory is short, the kernel should kill the processes in the
	// view, and not the processes that watch them.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("900"), 0)
	if r.User { // the program must not have capabilities
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			return failed("drop capabilities", "", err)
		}
	}
	words := append([]string{program}, args[1:]...)
	return unix.Exec("/proc/self/exe", words, os.Environ())
}

package gang

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/errorfile"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/progress"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/faulthandler"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// Command is what is needed to start a rank. The log files and pipes of the rank exist, and its program was
// found.
type Command struct {
	Rank  *Rank
	Local int    // the number of the rank among the ranks of this host
	Path  string // the path of the program
	Argv  []string
	Dir   string     // the working directory
	Env   []string   // all of its environment
	Want  []string   // the controller's variables, which replace variables of the gang with the same names
	Hints []string   // variables that are set only if nothing else sets them
	CPUs  string     // the CPUs to which the rank is bound; empty means all
	Files []*os.File // the files that become descriptors 0, 1, 2 and so on
}

// hint sets a variable, which is "NAME=VALUE". The caller knows that nothing else sets it.
func (c *Command) hint(entry string) {
	c.Env = append(c.Env, entry)
	c.Hints = append(c.Hints, entry)
}

// pump closes this process's copies of the rank's descriptors, and starts to move the rank's output. The caller calls
// it after the start of the process, or when it is clear that the process will never be started.
func (c *Command) pump(g *Gang) {
	c.Rank.pump(c.Files, g.logs.release)
}

// offerErrorFile gives the rank an error file beside its logs. If the rank's environment already names an error file,
// that file belongs to the user, and gangrun does not read it.
func (c *Command) offerErrorFile(logDir string) error {
	if environ.Lookup(c.Env, errorfile.Env) != "" {
		return nil
	}
	path, err := filepath.Abs(filepath.Join(logDir, job.LogName(c.Rank.number, "error.json")))
	if err != nil {
		return err
	}
	c.Rank.errorFile = path
	c.hint(errorfile.Env + "=" + path)
	return nil
}

// offerBeats gives the rank a descriptor, and the path of a file beside its logs. The rank can report heartbeats by
// each of them. Both belong to this gang, even if gangrun itself runs as a rank of another gang.
func (c *Command) offerBeats(logDir string) error {
	path, err := filepath.Abs(filepath.Join(logDir, job.LogName(c.Rank.number, "heartbeat")))
	if err != nil {
		return err
	}
	beats, file, err := progress.NewBeats(c.Rank.progress, path)
	if err != nil {
		return fmt.Errorf("make the file for the rank's heartbeats: %w", err)
	}
	c.Rank.beats = beats
	env := []string{progress.HeartbeatVariable + "=" + path, progress.FDVariable + "=" + strconv.Itoa(len(c.Files))}
	c.Files = append(c.Files, file)
	c.Env = environ.Overlay(c.Env, env)
	c.Hints = append(c.Hints, env...)
	return nil
}

// offerFaulthandler makes the Python programs of the rank write their stacks when gangrun asks for them.
func (c *Command) offerFaulthandler(start *wire.Start) error {
	if !start.Faulthandler {
		return nil
	}
	logs, err := filepath.Abs(string(start.LogDir))
	if err != nil {
		return err
	}
	dir := filepath.Join(logs, "python")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := faulthandler.Install(dir); err != nil {
		return err
	}
	c.Rank.stackFile = filepath.Join(logs, job.LogName(c.Rank.number, "stacks"))
	set := faulthandler.Environ(environ.Lookup(c.Env, "PYTHONPATH"), dir, c.Rank.stackFile)
	c.Env, c.Want = environ.Overlay(c.Env, set), append(c.Want, set...)
	return nil
}

// find finds the program of the command. paths has the programs that were found before.
func (c *Command) find(paths map[string]string) (err error) {
	name := c.Argv[0]
	if path, ok := paths[name]; ok {
		c.Path = path
		return nil
	}
	c.Path, err = process.LookPath(name, c.Dir, c.Env)
	if err == nil && strings.Contains(name, "/") == filepath.IsAbs(name) {
		paths[name] = c.Path // a relative path means another file in another directory
	}
	return err
}

// workdirError is the error if no rank can be started because of the working directory.
type workdirError struct{ error }

// unstarted returns the exit of a rank that could not be started because of err.
func unstarted(want *wire.RankStart, host string, err error) job.Exit {
	exit := job.Exit{Rank: int(want.Rank), Host: host, Status: job.Unstarted, Text: Describe(string(want.Argv[0]), err), Code: StartCode(err)}
	if errors.As(err, new(workdirError)) || errors.As(err, new(output.PTYError)) {
		exit.Code = 0 // the program was not looked for
	}
	return exit
}

// StartCode returns the exit code with which a shell reports err when it cannot start a program:
// 126 or 127. It returns 0 if err is not about the program.
func StartCode(err error) int {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return 127
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENOEXEC):
		return 126
	}
	return 0
}

// Describe says why a program could not be started.
func Describe(program string, err error) string {
	switch {
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Sprintf("%q is no program that this host can execute: %v", program, err)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.EBADF):
		return fmt.Sprintf("too many open files: the ranks of a host need about 9 each, raise the limit of %s (ulimit -n) or start fewer ranks: %v", limit(unix.RLIMIT_NOFILE), err)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Sprintf("too many processes: raise this user's limit of %s (ulimit -u) or start fewer ranks: %v", limit(unix.RLIMIT_NPROC), err)
	}
	return err.Error()
}

// limit returns the value of one of this process's limits as text.
func limit(resource int) string {
	var l unix.Rlimit
	switch err := unix.Getrlimit(resource, &l); {
	case err != nil:
		return "unknown size"
	case l.Cur == unix.RLIM_INFINITY:
		return "none"
	}
	return strconv.FormatUint(l.Cur, 10)
}

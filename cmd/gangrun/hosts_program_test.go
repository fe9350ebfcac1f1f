package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/noskip"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// farProgram is the program of ranks that print a line every tenth of a second. The lines depend only on the rank.
type farProgram struct {
	name   string // the name in the document
	mpi    job.MPI
	source string   // a script, or C code that is compiled
	by     []string // the interpreter of the script
	image  bool     // whether the ranks run in containers
}

var (
	farPrograms = []farProgram{
		{name: "none", mpi: job.MPINone, source: "../../examples/steady/steady.sh"},
		{name: "openmpi", mpi: job.MPIOpenMPI, source: "../../examples/steady/steady.c"},
		{name: "mpich", mpi: job.MPIMPICH, source: "../../examples/steady/steady.c"},
	}
	farTorch = farProgram{name: "none (torch)", mpi: job.MPINone, source: "../../examples/steady/steady.py", by: []string{python}}
)

// command copies the program to the directory that all hosts share, and returns the command that runs it.
func (p farProgram) command(t testing.TB, bed *testhosts.Bed, steps int) []string {
	t.Helper()
	source := p.source
	if build, ok := mpiPrograms[source+string(p.mpi)]; ok {
		var err error
		if source, err = build(); errors.Is(err, exec.ErrNotFound) {
			noskip.Skip(t, "%v", err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(bed.Shared(), "steady")
	writeProgram(t, path, data)
	return append(slices.Clone(p.by), path, fmt.Sprint(steps), "0.1")
}

// writeProgram writes an executable file. It prevents that a process is started at the same time. Such a process would
// have the file open for writing until it executes its program, and the file could not be executed as long.
func writeProgram(t testing.TB, path string, data []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// heldBack returns the command of a farProgram whose ranks do not make their last step before letGo.
func heldBack(bed *testhosts.Bed, command []string) []string {
	return append(command, filepath.Join(bed.Shared(), "end"))
}

// alike returns how many bytes at the beginning of a and b are equal.
func alike(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// varying matches the parts of gangrun's output that vary from run to run, with their replacements.
var varying = []struct {
	of *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`/[^\s"]*/ctl/home`), "~"},
	{regexp.MustCompile(`\d{8}-\d{6}-[0-9a-f]{4}`), "RUN"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "TOKEN"},
	{regexp.MustCompile(`SHA256:[\w+/=]+`), "SHA256:..."},
	{regexp.MustCompile(`known_hosts:\d+`), "known_hosts:2"},
	{regexp.MustCompile(`\d+\.\d+\.\d+\.\d+:\d{5}\b`), "ADDRESS"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d\.\d  `), ""},
}

var (
	// summaryBegins matches the first line of the summary of gangrun run. summaryTells matches the lines of the
	// summary that say something about a fault.
	summaryBegins = regexp.MustCompile(`^run {3,}`)
	summaryTells  = regexp.MustCompile(`^(run|  cause|  ranks|hint|exit code| +hint:) `)
)

// seen returns the lines of gangrun's output that say what has happened, without the parts that vary.
func (r *farRun) seen() (lines []string) {
	summary := false
	for _, line := range strings.Split(r.errs.String(), "\n") {
		text, ok := strings.CutPrefix(line, "gangrun: ")
		summary = summary || summaryBegins.MatchString(text)
		if !ok || !summary && strings.HasPrefix(text, "run ") || summary && !summaryTells.MatchString(text) {
			continue
		}
		lines = append(lines, plain(text))
	}
	return lines
}

// plain replaces the parts of a line that vary.
func plain(text string) string {
	for _, v := range varying {
		text = v.of.ReplaceAllString(text, v.by)
	}
	return strings.TrimRight(text, " ")
}

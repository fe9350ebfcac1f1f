package openmpi

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
)

const (
	// mpirunLog is the name of the file with mpirun's output, on the host that starts mpirun.
	mpirunLog = "mpirun.log"
	// maxLines limits how many lines of mpirun, or of a daemon, are evidence.
	maxLines = 500
	// maxTexts limits how many texts of ranks are remembered for complete.
	maxTexts = 1000
	// maxSearched limits how many bytes of the log complete searches.
	maxSearched = 64 << 20
)

// runtimeLog is the log of mpirun on the host that starts mpirun. On every other host, it is the log of the daemon.
type runtimeLog struct {
	*output.Stream
	gang *gang.Gang

	mu    sync.Mutex
	texts []string // texts that ranks have sent to mpirun for printing
}

func newRuntimeLog(g *gang.Gang) *runtimeLog {
	name := "daemon-" + g.Host + ".log"
	if g.Start.Mpirun != nil {
		name = mpirunLog
	}
	path := filepath.Join(string(g.Start.LogDir), name)
	return &runtimeLog{gang: g, Stream: output.NewLog(output.Options{
		Rank: output.RuntimeRank, Path: path, Grew: g.Grew(), Spooled: g.Spooled,
	})}
}

// open opens the log file to append to it.
func (l *runtimeLog) open() (*os.File, error) {
	file, err := safefile.OpenFile(l.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err == nil && l.Spooled {
		_ = file.Chmod(0o600) // like the log of a rank
	}
	return file, err
}

// copy writes the output of a process to the log file, and reports the first lines as evidence. It returns when from
// ends.
func (l *runtimeLog) copy(from, file *os.File) {
	buffer := make([]byte, 8<<10)
	number := 0
	var rest string
	for {
		n, err := from.Read(buffer)
		stored, _ := file.Write(buffer[:n]) // a full disk must not stop mpirun
		l.Grow(stored)
		if n > 0 && number < maxLines { // only the file has all lines
			lines := strings.SplitAfter(rest+string(buffer[:n]), "\n")
			rest = lines[len(lines)-1]
			rest = rest[:min(len(rest), cap(buffer))]
			for _, line := range lines[:len(lines)-1] {
				number++
				l.report(-1, number, line)
			}
		}
		if err != nil {
			return
		}
	}
}

// report reports a line of the log as evidence. number is 0 if the number of the line is not known.
func (l *runtimeLog) report(rank, number int, text string) {
	file := l.Path
	if rank >= 0 {
		file = filepath.Join(string(l.gang.Start.LogDir), mpirunLog) // mpirun's log, on the first host
	}
	l.gang.Reports.Lines(job.Line{
		Source: job.SourceStderr, Host: l.gang.Host, Rank: rank, File: file, Line: number, Time: hostclock.Now(), Text: output.Clean([]byte(text)),
	})
}

// fromRank handles a text that a rank has sent to its PMIx server. mpirun prints that text on the first host.
func (l *runtimeLog) fromRank(rank int, text string) {
	for line := range strings.Lines(text) {
		l.report(rank, 0, line)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.texts) < maxTexts {
		l.texts = append(l.texts, text)
	}
}

// complete ends the log when no process writes to it any more. Before that, complete appends texts of this host's ranks
// that mpirun did not print. mpirun drops some texts when its buffers are full.
func (l *runtimeLog) complete() {
	if l.gang.Start.Mpirun != nil {
		_ = l.addMissing() // an error does not matter, because the texts were reported
	}
	l.Seal()
}

// addMissing appends those lines of the ranks' texts that are not in the log.
func (l *runtimeLog) addMissing() error {
	l.mu.Lock()
	texts := l.texts
	l.mu.Unlock()
	if len(texts) == 0 {
		return nil
	}
	printed, err := safefile.ReadFile(l.Path, maxSearched)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	missing := missingLines(string(printed), texts)
	if missing == "" {
		return nil
	}
	file, err := l.open()
	if err != nil {
		return err
	}
	stored, err := file.WriteString(missing)
	l.Grow(stored)
	return errors.Join(err, file.Close())
}

// missingLines returns the lines of texts that are not in printed.
func missingLines(printed string, texts []string) string {
	var missing strings.Builder
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\r\n"); line != "" && !strings.Contains(printed, line) {
				missing.WriteString(line + "\n")
			}
		}
	}
	if missing.Len() > 0 && printed != "" && !strings.HasSuffix(printed, "\n") {
		return "\n" + missing.String()
	}
	return missing.String()
}

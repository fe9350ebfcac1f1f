// Package logset reads the logs that a job has left. These may be one log of all ranks or a log for each
// rank, the log of the launcher, the kernel's log, and files in which ranks have recorded their exceptions.
package logset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/telling"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/packedlog"
	"github.com/gangrun/gangrun/internal/recorded"
	"github.com/gangrun/gangrun/internal/safefile"
)

// Log is a log that can be read once.
type Log struct {
	Name string // its path; "-" is standard input
	Open func() (io.ReadCloser, error)
}

// maxLogs limits how many logs of one directory are read.
const maxLogs = 16384

// TooManyError reports that a directory has more logs than Find accepts.
type TooManyError struct{ Dir string }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%q holds more than %d logs", e.Dir, maxLogs)
}

// Hint says what the user should do.
func (e *TooManyError) Hint() string { return "name the directory of one job, or its logs" }

var (
	logName = textmatch.New(`(?i)(?:^|[._-])(?:log|logs|out|output|err|error|errors|stdout|stderr|txt|dmesg|kern|syslog|messages|journal)(?:[._-]|$)|\.[oe]\d+(?:[.-]\d+)?$|(?:^|/)(?:[^.]*|[^.]*\.\d+)$`)
	noLog   = textmatch.New(`(?i)\.(?:py|pyc|sh|c|cc|cpp|cu|h|f90|go|rs|java|jl|pt|pth|ckpt|safetensors|npy|npz|pkl|pickle|h5|hdf5|parquet|arrow|bin|so|o|a|exe|png|jpe?g|pdf|svg|csv|tsv|ya?ml|toml|ini|cfg|md|html?|sqlite|db|tar|tgz|zip|lock|pid|sock)$`)
	// flightName matches dumps of PyTorch's flight recorder, which end in the number of the rank.
	flightName = textmatch.New(`(?i)(?:trace|flight|nccl|(?:^|[._-])fr)[^/]*\d(?:\.(?:gz|bz2|zst))?$`)
	errJSON    = textmatch.New(`(?i)(?:^|[._-])error\.json$|^reply\.json$`)
)

// Find returns the names of the logs in dir and in the directories below it, in order. It omits hidden files,
// and files whose names are not those of logs. at is the path of dir, for errors.
func Find(dir fs.FS, at string) ([]string, error) {
	var names []string
	err := fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		base := filepath.Base(name)
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(base, "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case !entry.Type().IsRegular():
		case errJSON.MatchString(base), flightName.MatchString(base) && !noLog.MatchString(base), !strings.HasSuffix(base, ".json") && !noLog.MatchString(base) && logName.MatchString(base):
			if names = append(names, name); len(names) > maxLogs {
				return &TooManyError{at}
			}
		}
		return nil
	})
	return names, err
}

// Open returns the logs that a user has named. A name is the path of a log, the path of a directory with logs, "-"
// for standard input, or the name of a run of gangrun. If there is no file at a name, and the name has no slash and
// no dot, Open uses it as the name of a run, and calls run. run returns the directory of the run of that name, or an
// error if there is no such run. The files are not opened before they are read.
func Open(names []string, run func(name string) (dir string, err error)) ([]Log, error) {
	var logs []Log
	for _, name := range names {
		if name == "-" {
			logs = append(logs, Log{name, func() (io.ReadCloser, error) { return io.NopCloser(os.Stdin), nil }})
			continue
		}
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "/.") {
			if dir, e := run(name); e == nil {
				name = dir
				info, err = os.Stat(name)
			}
		}
		switch {
		case err != nil:
			return nil, err
		case info.Mode()&(fs.ModeDevice|fs.ModeSocket) != 0: // reading /dev/zero would never end
			return nil, &KindError{name, info.Mode()}
		case !info.IsDir():
			logs = append(logs, Log{name, func() (io.ReadCloser, error) { return openNamed(name) }})
			continue
		}
		found, err := Find(os.DirFS(name), name)
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0:
			return nil, &NoLogsError{name}
		}
		for _, f := range found {
			path := filepath.Join(name, f)
			logs = append(logs, Log{path, func() (io.ReadCloser, error) { return safefile.Open(path) }})
		}
	}
	return logs, nil
}

// openNamed opens a file or a pipe, such as /dev/fd/63 for the <(...) of a shell. It does not wait until a process
// writes into a FIFO. Without a writer, the FIFO is empty.
func openNamed(name string) (io.ReadCloser, error) {
	return os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// KindError reports that a name is that of a device or a socket.
type KindError struct {
	Name string
	Mode fs.FileMode
}

func (e *KindError) Error() string {
	return fmt.Sprintf("%q is %s, which holds no log", e.Name, safefile.Kind(e.Mode))
}

// Hint says what the user should do.
func (e *KindError) Hint() string {
	return "give the path of a file or a pipe, or - for standard input"
}

// NoLogsError reports that a directory has no logs.
type NoLogsError struct{ Dir string }

func (e *NoLogsError) Error() string { return fmt.Sprintf("there are no logs in %q", e.Dir) }

// Hint says what the user should do.
func (e *NoLogsError) Hint() string {
	return "name the logs themselves if they have unusual names; gangrun report RUN tells the cause of a run"
}

// Read reads the logs of one job in parallel. Of a long log, it keeps the end, and the lines that may be
// signs of failure according to the rules in book. If only a part of a log can be read, Read calls note with
// the reason. If logs cannot be read at all, Read returns their errors, joined.
func Read(ctx context.Context, logs []Log, book *rule.Book, note func(string)) (job.Evidence, error) {
	names := make([]string, len(logs))
	for i, l := range logs {
		names[i] = l.Name
	}
	origins := logtext.Origins(names)
	lines, errs := make([][]job.Line, len(logs)), make([]error, len(logs))
	var noting sync.Mutex
	once := func(text string) {
		noting.Lock()
		defer noting.Unlock()
		note(text)
	}
	tells := telling.Of(book)
	var readers sync.WaitGroup
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), len(logs)) {
		readers.Go(func() {
			for i := range next {
				lines[i], errs[i] = read(logs[i], origins[i], tells, once)
			}
		})
	}
	for i := range logs {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	readers.Wait()
	if err := errors.Join(ctx.Err(), errors.Join(errs...)); err != nil {
		return job.Evidence{}, err
	}
	var e job.Evidence
	offset, each := 0, mostOnHost(lines)
	for _, of := range lines {
		if n := globalRanks(of, offset); n > 0 || len(of) > 0 && of[0].Source == job.SourceKernel {
			offset += n
		} else if each > 0 && len(of) > 0 && of[0].Host != "" {
			offset += each // the lines of the log name no rank
		}
		e.Lines = append(e.Lines, of...)
	}
	return e, nil
}

// globalRanks changes the numbers that ranks have on their host into numbers of ranks of the job. offset is the number
// of ranks on the hosts before it. count is the number of ranks on this host. Ranks that are named in lines count, too.
func globalRanks(lines []job.Line, offset int) (count int) {
	if first, ok := logtext.FirstRank(lines); ok {
		offset = first
	}
	for i := range lines {
		if local := lines[i].Rank - logtext.LocalRanks; local >= 0 {
			count = max(count, local+1)
			lines[i].Rank = offset + local
		}
	}
	if count == 0 {
		for _, l := range lines {
			if l.Rank >= offset && l.Rank < offset+logtext.MostLocal {
				count = max(count, l.Rank+1-offset)
			}
		}
	}
	return count
}

// mostOnHost returns the largest number of ranks on one host. It takes that number from the local ranks with which some
// launchers tag each line. Without such tags, it returns 0.
func mostOnHost(logs [][]job.Line) (count int) {
	for _, lines := range logs {
		for _, l := range lines {
			count = max(count, l.Rank-logtext.LocalRanks+1)
		}
	}
	return count
}

// Text returns the evidence in a text, read as the only log of a job.
func Text(log string, book *rule.Book) (job.Evidence, error) {
	lines, err := logtext.Read(logtext.Origins([]string{"log"})[0], strings.NewReader(log), telling.Of(book))
	globalRanks(lines, 0)
	return job.Evidence{Lines: lines}, err
}

func read(l Log, origin logtext.Origin, tells func(string) bool, note func(string)) (lines []job.Line, err error) {
	in, err := l.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	text, err := packedlog.Open(l.Name, in, note)
	if err != nil {
		return nil, err
	}
	if line, whole := record(l.Name, origin, text); line != nil {
		return []job.Line{*line}, nil
	} else {
		text = whole
	}
	if origin.Source == job.SourceErrorFile {
		data, err := io.ReadAll(io.LimitReader(text, recorded.MaxBytes+1))
		if err != nil {
			return nil, err
		}
		if lines := recording(origin, data); lines != nil {
			return lines, nil
		}
		origin.Source, text = job.SourceStderr, io.MultiReader(bytes.NewReader(data), text)
	}
	return logtext.Read(origin, text, tells)
}

// recording returns the lines of the exception in an error file. It returns nil if data is no error file.
func recording(o logtext.Origin, data []byte) (lines []job.Line) {
	e, ok := recorded.Parse(data)
	if !ok {
		return nil
	}
	for _, text := range e.Lines {
		lines = append(lines, job.Line{Source: o.Source, Host: o.Host, Rank: o.Rank, File: o.Name, Text: text, Time: logtext.Time(e.Time)})
	}
	return lines
}

package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/openmpi"
)

// surveyor finds out what the static preflight wants to know of this host.
type surveyor struct {
	host     string
	env      []string
	children *process.Children
}

func (v surveyor) survey(ctx context.Context, ask job.Survey) job.Facts {
	cores, memory := capacity()
	facts := job.Facts{Host: v.host, Cores: cores, Memory: memory, Time: hostclock.Now()}
	facts.Workdir = lookPath(ask.Workdir)
	if facts.Workdir.Kind == job.ErrorNone {
		if err := unix.Access(ask.Workdir, unix.X_OK); facts.Workdir.Dir && err != nil {
			fail(&facts.Workdir, err)
		}
	}
	facts.Program = v.program(ctx, ask)
	if facts.Program.Kind == job.ErrorNone {
		facts.Script = v.script(ctx, ask, facts.Program.Path)
		facts.OpenMPI = v.openMPI(ask.MPI, facts.Program, facts.Script)
	}
	if ask.Versions {
		facts.Versions = v.versions(ctx, ask, facts)
	}
	for _, input := range ask.Inputs {
		facts.Inputs = append(facts.Inputs, readable(resolve(ask.Workdir, input)))
	}
	if ask.CheckpointDir != "" {
		fact := tryDirectory(ask.CheckpointDir)
		facts.Check = &fact
	}
	return facts
}

// openMPI says which Open MPI would start the program; nil when the program is
// not one for Open MPI, as far as is known. Which MPI mpi4py uses is not.
func (v surveyor) openMPI(asked job.MPI, program job.ProgramFact, script *job.ScriptFact) *job.OpenMPIFact {
	library, python := "", (asked == job.MPIAuto || asked == "") && program.MPI == "" && script != nil && script.MPI4py
	if program.MPI == job.MPIOpenMPI {
		library = program.Library
	} else if asked != job.MPIOpenMPI && !python {
		return nil
	}
	found, _ := openmpi.Find(library, v.env) // what is not there is empty
	return &job.OpenMPIFact{Mpirun: found.Mpirun, Daemon: found.Daemon, Version: found.Version}
}

func resolve(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// lookPath says whether path exists, and what it is.
func lookPath(path string) job.PathFact {
	fact := job.PathFact{Path: path}
	info, err := os.Stat(path)
	if err != nil {
		fail(&fact, err)
		return fact
	}
	fact.Dir, fact.Bytes = info.IsDir(), info.Size()
	return fact
}

// readable says whether a file can be opened and its first byte read, or a
// directory listed, and whether there is anything in it.
func readable(path string) job.PathFact {
	fact := lookPath(path)
	if fact.Kind != job.ErrorNone {
		return fact
	}
	// O_NONBLOCK: a FIFO among the inputs must not hang the preflight.
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		fail(&fact, err)
		return fact
	}
	defer file.Close()
	if fact.Dir {
		names, err := file.Readdirnames(1)
		if err != nil && err != io.EOF {
			fail(&fact, err)
		}
		fact.Empty = len(names) == 0 && fact.Kind == job.ErrorNone
		return fact
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		// What is in /proc has bytes, and no size.
		_, err := file.Read(make([]byte, 1))
		fact.Empty = err == io.EOF
		if err != nil && err != io.EOF {
			fail(&fact, err)
		}
	}
	return fact
}

func fail(fact *job.PathFact, err error) { fact.Kind, fact.Error = errorKind(err), reason(err) }

// reason is the innermost error: the path stands beside it anyway.
func reason(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

func errorKind(err error) job.ErrorKind {
	switch {
	case err == nil:
		return job.ErrorNone
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return job.ErrorMissing
	case errors.Is(err, fs.ErrPermission):
		return job.ErrorPermission
	case errors.Is(err, unix.EROFS):
		return job.ErrorReadOnly
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return job.ErrorFull
	case errors.Is(err, unix.EISDIR):
		return job.ErrorKindOf
	default:
		return job.ErrorIO
	}
}

// hashFile returns the SHA-256 of a file's content.
func hashFile(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum, buffer := sha256.New(), make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, err := file.Read(buffer)
		sum.Write(buffer[:n])
		if err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", ctx.Err()
}

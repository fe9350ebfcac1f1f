package agent

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/agent/mpilib"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/job"
)

// mostMaps is how much of a process's maps is read: that of some 200,000
// mappings, three times what the kernel allows by default.
const mostMaps = 16 << 20 // bytes

// mappedMPI says which MPI library a process has mapped, by path, and whether it
// can be seen that it has been initialised: Open MPI loads its components
// then, unless they are part of the library. MPI is empty where nothing is
// mapped or the process cannot be looked at.
func mappedMPI(pid int) (mpi job.MPI, library string, initialised bool) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return "", "", false
	}
	defer file.Close()
	return scanMaps(io.LimitReader(file, mostMaps))
}

// When a rank that has not met the others is looked at: often at first, for what
// lasts a moment only, then ever more rarely, for an import of a minute.
const (
	lookEvery = 25 * time.Millisecond
	lookOften = 3 * time.Second
	lookLast  = time.Minute
)

// nextLook returns when to look again at ranks that were started that long ago.
func nextLook(age time.Duration) <-chan time.Time {
	switch {
	case age < lookOften:
		return time.After(lookEvery)
	case age < lookLast:
		return time.After(age / 4)
	}
	return nil
}

// lastsFor is how long a process below a rank must have been seen for it to count
// as what the gang is about, and not as a tool that a rank uses for a moment.
const lastsFor = 2 * time.Second

// singleton looks at the first living rank that has not met the others, and what
// it has started: it returns the Open MPI that has been initialised there by a
// process that believes to be alone, and whether that is what the gang is about:
// the rank itself, or what it has run for a while.
func (g *gang) singleton() (library string, lasts bool) {
	silent := func(int) bool { return true }
	if g.meeting != nil {
		up := g.meeting.wireup()
		silent = func(rank int) bool { return slices.Contains(up.Silent, rank) }
	}
	for _, r := range g.ranks {
		if r.child == nil || r.child.Ended() || !silent(r.number) {
			continue
		}
		if library := believesAlone(r.child.PID); library != "" {
			return library, true
		}
		for _, pid := range process.ListedDescendants(r.child.PID) {
			if library := believesAlone(pid); library != "" {
				p, ok := process.Read(pid)
				if g.suspect.PID != pid || g.suspect.Start != p.Start {
					g.suspect, g.suspected = p, time.Now()
				}
				return library, ok && time.Since(g.suspected) >= lastsFor
			}
		}
		break
	}
	return "", false
}

// believesAlone returns the Open MPI library of a process that has initialised it and was
// not started by Open MPI, which would have told it so.
func believesAlone(pid int) (library string) {
	mpi, library, initialised := mappedMPI(pid)
	if mpi != job.MPIOpenMPI || !initialised {
		return ""
	}
	dir := "/proc/" + strconv.Itoa(pid)
	exe, _ := os.Readlink(dir + "/exe")
	switch filepath.Base(exe) {
	case "ompi_info", "oshmem_info": // they load what there is
		return ""
	}
	env, err := os.ReadFile(dir + "/environ")
	if err != nil {
		return ""
	}
	for entry := range strings.SplitSeq(string(env), "\x00") {
		for _, begin := range []string{"OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "PMIX_NAMESPACE="} {
			if strings.HasPrefix(entry, begin) {
				return ""
			}
		}
	}
	return library
}

// scanMaps finds the MPI library in what proc_pid_maps(5) describes.
func scanMaps(r io.Reader) (mpi job.MPI, library string, initialised bool) {
	lines := bufio.NewReaderSize(r, 16<<10)
	best, openMPI := mpilib.NotMPI, false
	var last []byte // the path of the line before: a file's mappings stand together
	for {
		line, err := lines.ReadSlice('\n')
		path := mappedPath(line)
		for err == bufio.ErrBufferFull { // longer than any path
			path = nil
			_, err = lines.ReadSlice('\n')
		}
		if len(path) > 0 && !bytes.Equal(path, last) {
			last = append(last[:0], path...)
			base := path[bytes.LastIndexByte(path, '/')+1:]
			switch {
			case bytes.HasPrefix(base, []byte("mca_pml_")):
				initialised = true
			case bytes.HasPrefix(base, []byte("libmpi")), bytes.HasPrefix(base, []byte("libopen")), bytes.HasPrefix(base, []byte("liboshmem")):
				family, p := mpilib.Classify(string(base))
				openMPI = openMPI || p == mpilib.Runtime
				if p > best {
					best, mpi, library = p, family, string(path)
				}
			}
		}
		if err != nil {
			break
		}
	}
	if best == mpilib.Ambiguous && openMPI {
		mpi = job.MPIOpenMPI
	}
	return mpi, library, initialised && mpi == job.MPIOpenMPI
}

// mappedPath returns the path of a line of maps, which is what follows five
// fields and blanks; empty when it is of no file.
func mappedPath(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	for range 5 {
		at := bytes.IndexByte(line, ' ')
		if at < 0 {
			return nil
		}
		line = line[at+1:]
	}
	line = bytes.TrimSuffix(bytes.TrimLeft(line, " "), []byte(" (deleted)"))
	if len(line) == 0 || line[0] != '/' {
		return nil
	}
	return line
}

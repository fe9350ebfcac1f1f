package wireup

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/agent/mpilib"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/job"
)

// maxMaps limits how many bytes of a process's maps are read. It is enough for about 200,000 mappings, which is three
// times the kernel's default limit.
const maxMaps = 16 << 20

// mappedMPI returns the family and the path of the MPI library that a process has mapped, and
// whether the library is initialised. When Open MPI is initialised, it maps its components, unless
// they are part of the library. mpi is empty if there is no such library, or if the process cannot
// be read.
func mappedMPI(pid int) (mpi job.MPI, library string, initialised bool) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return "", "", false
	}
	defer file.Close()
	return scanMaps(io.LimitReader(file, maxMaps))
}

// The times at which ranks that have not joined are checked. In the first lookOften, they are checked every lookEvery,
// because a process may exist only for a moment. Later they are checked more rarely, because an import may take a
// minute. After lookLast, they are no longer checked.
const (
	lookEvery = 25 * time.Millisecond
	lookOften = 3 * time.Second
	lookLast  = time.Minute
)

// nextLook returns a channel that fires when ranks of that age must be checked again. It returns nil if they need not
// be checked again.
func nextLook(age time.Duration) <-chan time.Time {
	switch {
	case age < lookOften:
		return time.After(lookEvery)
	case age < lookLast:
		return time.After(age / 4)
	}
	return nil
}

// lastingAge is how long a process below a rank must have been seen before it counts as the gang's program. A tool that
// a rank uses for a moment does not live that long.
const lastingAge = 2 * time.Second

// singletons finds ranks that have initialised MPI as a gang of one. They were started without what their MPI library
// needs to find the other ranks.
type singletons struct {
	gang    *gang.Gang
	begun   time.Time
	library string // the Open MPI library that a rank has initialised; empty if there is none so far
	lasting bool   // the gang's program uses the library, and not only a tool that ends soon

	suspect process.Process // the last process below a rank that was found to be a singleton
	since   time.Time       // when suspect was first seen
}

func newSingletons(g *gang.Gang) *singletons { return &singletons{gang: g, begun: time.Now()} }

// look checks the ranks again. It reports whether library or lasting has changed. again fires when the next check is
// due; it is nil if no further check is needed.
func (s *singletons) look(silent func(rank int) bool) (changed bool, again <-chan time.Time) {
	if library, lasting := s.find(silent); library != "" && (s.library == "" || lasting) {
		s.library, s.lasting, changed = library, lasting, true
	}
	if s.lasting {
		return changed, nil
	}
	return changed, nextLook(time.Since(s.begun))
}

// find checks the first living rank that has not joined, and its descendants. It returns the Open MPI library of a
// singleton among them. lasting is true if that process is the rank itself, or has existed for a while.
func (s *singletons) find(silent func(rank int) bool) (library string, lasting bool) {
	for _, r := range s.gang.Ranks() {
		rank, ok := r.Living()
		if !ok || !silent(r.Number()) {
			continue
		}
		if library := believesAlone(rank); library != "" {
			return library, true
		}
		for _, pid := range process.ListedDescendants(rank) {
			if library := believesAlone(pid); library != "" {
				p, ok := process.Read(pid)
				if s.suspect.PID != pid || s.suspect.Start != p.Start {
					s.suspect, s.since = p, time.Now()
				}
				return library, ok && time.Since(s.since) >= lastingAge
			}
		}
		break
	}
	return "", false
}

// believesAlone returns the Open MPI library of a process that has initialised the library but was not started by Open
// MPI. Open MPI would have set its variables.
func believesAlone(pid int) (library string) {
	mpi, library, initialised := mappedMPI(pid)
	if mpi != job.MPIOpenMPI || !initialised {
		return ""
	}
	dir := "/proc/" + strconv.Itoa(pid)
	exe, _ := os.Readlink(dir + "/exe")
	switch filepath.Base(exe) {
	case "ompi_info", "oshmem_info": // these tools load all components
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

// scanMaps finds the MPI library in a file that has the format of proc_pid_maps(5).
func scanMaps(r io.Reader) (mpi job.MPI, library string, initialised bool) {
	lines := bufio.NewReaderSize(r, 16<<10)
	best, openMPI := mpilib.NotMPI, false
	var last []byte // the path of the previous line, because the mappings of a file are adjacent
	for {
		line, err := lines.ReadSlice('\n')
		path := mappedPath(line)
		for err == bufio.ErrBufferFull { // the line is longer than any path
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

// mappedPath returns the path in a line of maps, which follows five fields and blanks. It returns nothing if the
// mapping has no file.
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

package wireup

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/job"
)

// mapsOf returns lines of /proc/PID/maps for files.
func mapsOf(paths ...string) string {
	text := "55d0-55d1 r-xp 00000000 08:01 12345                      /usr/bin/train\n7ffc-7ffd rw-p 00000000 00:00 0                          [stack]\n7f00-7f01 rw-p 00000000 00:00 0 \n"
	for _, path := range paths {
		for _, mode := range []string{"r--p", "r-xp", "rw-p"} {
			text += "7f0000000000-7f0000001000 " + mode + " 00000000 08:01 1234567                    " + path + "\n"
		}
	}
	return text
}

func TestScanMaps(t *testing.T) {
	for _, c := range []struct {
		name, maps  string
		mpi         job.MPI
		library     string
		initialised bool
	}{
		{"nothing", "", "", "", false},
		{"no MPI", mapsOf("/lib/libc.so.6", "/lib/libopenblas.so.0"), "", "", false},
		{"MPICH", mapsOf("/lib/libc.so.6", "/lib/libmpich.so.12.2.2"), job.MPIMPICH, "/lib/libmpich.so.12.2.2", false},
		{"MPICH's bindings first", mapsOf("/lib/libmpichfort.so.12.2.2", "/lib/libmpich.so.12.2.2"), job.MPIMPICH, "/lib/libmpich.so.12.2.2", false},
		{"common ABI", mapsOf("/opt/intel/libmpifort.so.12.0", "/opt/intel/libmpi.so.12.0.0"), job.MPIMPICH, "/opt/intel/libmpi.so.12.0.0", false},
		{"Open MPI", mapsOf("/lib/libopen-pal.so.40.30.3", "/lib/libmpi.so.40.30.4"), job.MPIOpenMPI, "/lib/libmpi.so.40.30.4", false},
		{"Open MPI, initialised", mapsOf("/lib/libmpi_cxx.so.40.30.1", "/lib/libmpi.so.40.30.4", "/lib/openmpi3/mca_pml_ob1.so"), job.MPIOpenMPI, "/lib/libmpi.so.40.30.4", true},
		{"another component", mapsOf("/lib/libmpi.so.40.30.4", "/lib/openmpi3/mca_shmem_mmap.so"), job.MPIOpenMPI, "/lib/libmpi.so.40.30.4", false},
		{"Open MPI 1.10", mapsOf("/opt/libmpi.so.12.0.3", "/opt/libopen-rte.so.12.0.3"), job.MPIOpenMPI, "/opt/libmpi.so.12.0.3", false},
		{"Open MPI's runtime alone", mapsOf("/lib/libopen-rte.so.40.30.3"), job.MPIOpenMPI, "/lib/libopen-rte.so.40.30.3", false},
		{"replaced file", mapsOf("/lib/libmpich.so.12.2.2 (deleted)"), job.MPIMPICH, "/lib/libmpich.so.12.2.2", false},
		{"blanks in the path", mapsOf("/my libs/libmpich.so.12"), job.MPIMPICH, "/my libs/libmpich.so.12", false},
		{"no end of line", strings.TrimSuffix(mapsOf("/lib/libmpich.so.12"), "\n"), job.MPIMPICH, "/lib/libmpich.so.12", false},
		{"a line of any length", "a b c d e /" + strings.Repeat("x", 100<<10) + "/libmpi.so.40\n" + mapsOf("/lib/libmpich.so.12"), job.MPIMPICH, "/lib/libmpich.so.12", false},
		{"few fields", "a b c d /lib/libmpi.so.40\n\n     \n", "", "", false},
		{"no file", "a b c d e libmpi.so.40\n", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			mpi, library, initialised := scanMaps(strings.NewReader(c.maps))
			if mpi != c.mpi || library != c.library || initialised != c.initialised {
				t.Errorf("got %q, %q, %t; want %q, %q, %t", mpi, library, initialised, c.mpi, c.library, c.initialised)
			}
		})
	}
}

func TestScanMapsAllocates(t *testing.T) {
	text := mapsOf("/lib/libmpich.so.12")
	for range 5000 {
		text += mapsOf("/lib/libc.so.6")
	}
	few := testing.AllocsPerRun(3, func() { scanMaps(strings.NewReader(text)) })
	if few > 20 {
		t.Errorf("%g allocations for %d bytes", few, len(text))
	}
}

func FuzzScanMaps(f *testing.F) {
	f.Add(mapsOf("/lib/libmpi.so.40.30.4", "/lib/openmpi3/mca_pml_ob1.so"))
	f.Add(mapsOf("/opt/libmpi.so.12", "/opt/libopen-pal.so.13 (deleted)"))
	f.Add("a b c d e /libmpi")
	f.Add("     /libmpich.so.\n      /mca_pml_")
	f.Fuzz(func(t *testing.T, text string) {
		mpi, library, initialised := scanMaps(strings.NewReader(text))
		if (mpi == "") != (library == "") || initialised && mpi != job.MPIOpenMPI {
			t.Fatalf("got %q, %q, %t", mpi, library, initialised)
		}
		if library != "" && (!filepath.IsAbs(library) || !strings.Contains(text, library)) {
			t.Fatalf("the library %q is none of the text's", library)
		}
	})
}

// TestMappedMPI runs programs of both libraries as singletons, and looks at them before and after MPI_Init.
func TestMappedMPI(t *testing.T) {
	dir := t.TempDir()
	agenttest.WriteFile(t, dir+"/mpi.c", `#include <mpi.h>
#include <stdio.h>
static void say(const char *s) { puts(s); fflush(stdout); getchar(); }
int main(void) { say("before"); MPI_Init(0, 0); say("after"); MPI_Finalize(); return 0; }
`, 0o644)
	for _, c := range []struct {
		mpi         job.MPI
		prefix      string
		initialised bool // what must be seen after MPI_Init
	}{{job.MPIMPICH, "libmpich.so.12.", false}, {job.MPIOpenMPI, "libmpi.so.40.", true}} {
		t.Run(string(c.mpi), func(t *testing.T) {
			program := filepath.Join(dir, string(c.mpi))
			agenttest.Compile(t, dir, "mpicc."+string(c.mpi), "-o", program, "mpi.c")
			command := exec.CommandContext(t.Context(), program)
			in, err := command.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			command.Stderr = os.Stderr
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			for _, when := range []string{"before\n", "after\n"} {
				if line, err := lines.ReadString('\n'); err != nil || line != when {
					t.Fatalf("it says %q (%v), want %q", line, err, when)
				}
				mpi, library, initialised := mappedMPI(command.Process.Pid)
				if want := c.initialised && when == "after\n"; mpi != c.mpi || !strings.HasPrefix(filepath.Base(library), c.prefix) || initialised != want {
					t.Errorf("%sgot %q, %q, %t; want %q, %s..., %t", when, mpi, library, initialised, c.mpi, c.prefix, want)
				}
				if _, err := io.WriteString(in, "\n"); err != nil {
					t.Fatal(err)
				}
			}
			if err := command.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	if mpi, library, _ := mappedMPI(os.Getpid()); mpi != "" || library != "" {
		t.Errorf("the test has mapped %q, %q", mpi, library)
	}
	if mpi, _, _ := mappedMPI(-1); mpi != "" {
		t.Errorf("no process has mapped %q", mpi)
	}
}

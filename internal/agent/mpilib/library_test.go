package mpilib

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/job"
)

func TestMPILibrary(t *testing.T) {
	for name, want := range map[string]struct {
		mpi job.MPI
		p   Part
	}{
		"libmpich.so.12":                   {job.MPIMPICH, Library},
		"libmpich.so.12.2.2":               {job.MPIMPICH, Library},
		"libmpichfort.so.12":               {job.MPIMPICH, Binding},
		"libmpicxx.so.12":                  {job.MPIMPICH, Binding},
		"libmpifort.so.12":                 {job.MPIMPICH, Binding},
		"libmpi.so.12":                     {job.MPIMPICH, Ambiguous},
		"libmpi.so.12.0.0":                 {job.MPIMPICH, Ambiguous},
		"libmpi_abi.so.0":                  {job.MPIMPICH, Ambiguous},
		"libmpi.so":                        {job.MPIMPICH, Ambiguous},
		"libmpi_mt.so.4":                   {job.MPIMPICH, Library},
		"libmpi_gnu_91.so.12":              {job.MPIMPICH, Library},
		"libmpi_cray.so.12.0.0":            {job.MPIMPICH, Library},
		"libmpi.so.0":                      {job.MPIOpenMPI, Library},
		"libmpi.so.1":                      {job.MPIOpenMPI, Library},
		"libmpi.so.20":                     {job.MPIOpenMPI, Library},
		"libmpi.so.40":                     {job.MPIOpenMPI, Library},
		"libmpi.so.40.30.4":                {job.MPIOpenMPI, Library},
		"libmpi.so.80":                     {job.MPIOpenMPI, Library},
		"libmpi_cxx.so.40":                 {job.MPIOpenMPI, Binding},
		"libmpi_mpifh.so.40":               {job.MPIOpenMPI, Binding},
		"libmpi_usempi_ignore_tkr.so.40":   {job.MPIOpenMPI, Binding},
		"libopen-pal.so.40":                {job.MPIOpenMPI, Runtime},
		"libopen-rte.so.12":                {job.MPIOpenMPI, Runtime},
		"libmpi_stubs.so.1":                {"", NotMPI},
		"libmpifoo.so.12":                  {"", NotMPI},
		"libc.so.6":                        {"", NotMPI},
		"libopenblas.so.0":                 {"", NotMPI},
		"":                                 {"", NotMPI},
		".so.12":                           {"", NotMPI},
		"mpi4py.cpython-311-x86_64.so":     {"", NotMPI},
		"libmpi_usempif08-gfortran.so.400": {"", NotMPI},
	} {
		if mpi, p := Classify(name); mpi != want.mpi || p != want.p {
			t.Errorf("%q is %q, part %d of it; want %q, part %d", name, mpi, p, want.mpi, want.p)
		}
	}
}

func TestMPIOf(t *testing.T) {
	dir := t.TempDir()
	agenttest.WriteFile(t, dir+"/mpi.c", "#include <mpi.h>\nint start(void) { return MPI_Init(0, 0); }\n", 0o644)
	agenttest.WriteFile(t, dir+"/start.c", "int start(void);\nint main(void) { return start(); }\n", 0o644)
	agenttest.WriteFile(t, dir+"/main.c", "int main(void) { return 0; }\n", 0o644)
	agenttest.WriteFile(t, dir+"/empty.c", "int x;\n", 0o644)
	for name, text := range map[string]string{"mpich": "MPICH Version:\\t4.0.2", "openmpi": "Open MPI v4.1.4, package: x", "none": "MPICH"} {
		agenttest.WriteFile(t, dir+"/static-"+name+".c", "#include <stdio.h>\nint main(void) { puts(\""+text+"\"); return 0; }\n", 0o644)
		agenttest.Compile(t, dir, "gcc", "-static", "-o", "static-"+name, "static-"+name+".c")
	}
	for _, sub := range []string{"/lib", "/old", "/new"} {
		if err := os.Mkdir(dir+sub, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, mpi := range []string{"mpich", "openmpi"} {
		agenttest.Compile(t, dir, "mpicc."+mpi, "-o", mpi, "mpi.c", "start.c")
		// Here another library stands between the program and MPI. It is below the program or elsewhere.
		agenttest.Compile(t, dir, "mpicc."+mpi, "-shared", "-fPIC", "-o", "lib/libstart-"+mpi+".so", "mpi.c")
		below := []string{"start.c", "-Llib", "-lstart-" + mpi, "-Wl,--allow-shlib-undefined"}
		agenttest.Compile(t, dir, "gcc", append(below, "-o", "far-"+mpi)...)
		agenttest.Compile(t, dir, "gcc", append(below, "-o", "runpath-"+mpi, "-Wl,--enable-new-dtags,-rpath,/nowhere:$ORIGIN/lib")...)
		agenttest.Compile(t, dir, "gcc", append(below, "-o", "rpath-"+mpi, "-Wl,--disable-new-dtags,-rpath,${ORIGIN}/lib")...)
	}
	// Programs in other languages need a binding library. Some of them need only that.
	agenttest.Compile(t, dir, "gcc", "-o", "fortran-mpich", "main.c", "-Wl,--no-as-needed,--allow-shlib-undefined", "-l:libmpichfort.so.12")
	agenttest.Compile(t, dir, "gcc", "-o", "fortran-openmpi", "main.c", "-Wl,--no-as-needed,--allow-shlib-undefined", "-l:libmpi_mpifh.so.40")
	// There are two libraries of the same name. The one of Open MPI 1.10 needs its own runtime.
	agenttest.Compile(t, dir, "gcc", "-shared", "-fPIC", "-o", "old/libopen-pal.so.13", "-Wl,-soname,libopen-pal.so.13", "empty.c")
	agenttest.Compile(t, dir, "gcc", "-shared", "-fPIC", "-o", "old/libmpi.so.12", "-Wl,-soname,libmpi.so.12,--no-as-needed", "empty.c", "old/libopen-pal.so.13")
	agenttest.Compile(t, dir, "gcc", "-shared", "-fPIC", "-o", "new/libmpi.so.12", "-Wl,-soname,libmpi.so.12", "empty.c")
	agenttest.Compile(t, dir, "gcc", "-o", "ambiguous", "-Wl,--no-as-needed", "main.c", "new/libmpi.so.12")
	agenttest.Compile(t, dir, "gcc", "-o", "plain", "main.c")
	if err := os.Symlink("runpath-mpich", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"/runpath-mpich", dir+"/lib/link"); err != nil {
		t.Fatal(err)
	}
	agenttest.WriteFile(t, dir+"/script", "#!"+dir+"/openmpi -x\n", 0o755)
	agenttest.WriteFile(t, dir+"/env-script", "#!/usr/bin/env mpich\n", 0o755)
	agenttest.WriteFile(t, dir+"/shell", "#!/bin/sh\n", 0o755)
	agenttest.WriteFile(t, dir+"/text", "echo\n", 0o755)
	agenttest.WriteFile(t, dir+"/truncated", "\x7fELF\x02\x01\x01", 0o755)
	agenttest.WriteFile(t, dir+"/bare", "#!\n", 0o755)
	agenttest.WriteFile(t, dir+"/foreign/libmpi.so.12", "no library", 0o644)

	const mpich, openMPI = "libmpich.so.12", "libmpi.so.40"
	for _, c := range []struct {
		program, env string
		mpi          job.MPI
		library      string // the base name of the library or, with a slash, its path below dir; empty if there is none
		absent       bool   // the library is not found, so it has a name without a directory
	}{
		{program: "mpich", mpi: job.MPIMPICH, library: mpich},
		{program: "openmpi", mpi: job.MPIOpenMPI, library: openMPI},
		{program: "fortran-mpich", mpi: job.MPIMPICH, library: mpich},
		{program: "fortran-openmpi", mpi: job.MPIOpenMPI, library: openMPI},
		{program: "runpath-mpich", mpi: job.MPIMPICH, library: mpich},
		{program: "runpath-openmpi", mpi: job.MPIOpenMPI, library: openMPI},
		{program: "rpath-mpich", mpi: job.MPIMPICH, library: mpich},
		{program: "rpath-openmpi", mpi: job.MPIOpenMPI, library: openMPI},
		{program: "link", mpi: job.MPIMPICH, library: mpich},
		{program: "lib/link", mpi: job.MPIMPICH, library: mpich},
		{program: "far-mpich"},
		{program: "far-mpich", env: "LD_LIBRARY_PATH=/nowhere:" + dir + "/lib", mpi: job.MPIMPICH, library: mpich},
		{program: "far-openmpi", env: "LD_LIBRARY_PATH=" + dir + "/lib;/nowhere", mpi: job.MPIOpenMPI, library: openMPI},
		{program: "ambiguous", mpi: job.MPIMPICH, library: "libmpi.so.12", absent: true},
		{program: "ambiguous", env: "LD_LIBRARY_PATH=" + dir + "/new", mpi: job.MPIMPICH, library: "/new/libmpi.so.12"},
		{program: "ambiguous", env: "LD_LIBRARY_PATH=" + dir + "/old", mpi: job.MPIOpenMPI, library: "/old/libmpi.so.12"},
		{program: "ambiguous", env: "LD_LIBRARY_PATH=" + dir + "/foreign:" + dir + "/old", mpi: job.MPIOpenMPI, library: "/old/libmpi.so.12"},
		{program: "static-mpich", mpi: job.MPIMPICH},
		{program: "static-openmpi", mpi: job.MPIOpenMPI},
		{program: "static-none"},
		{program: "script", mpi: job.MPIOpenMPI, library: openMPI},
		{program: "env-script", env: "PATH=" + dir, mpi: job.MPIMPICH, library: mpich},
		{program: "env-script", env: "PATH=/nowhere"},
		{program: "plain"},
		{program: "shell"},
		{program: "text"},
		{program: "truncated"},
		{program: "bare"},
		{program: "absent"},
		{program: "lib"},
	} {
		t.Run(strings.TrimSpace(c.program+" "+strings.ReplaceAll(c.env, dir, "")), func(t *testing.T) {
			mpi, library := Of(filepath.Join(dir, c.program), []string{"A=1", c.env})
			if mpi != c.mpi {
				t.Errorf("it needs %q, want %q", mpi, c.mpi)
			}
			switch {
			case strings.HasPrefix(c.library, "/"):
				if library != dir+c.library {
					t.Errorf("its library is %q, want %q", library, dir+c.library)
				}
			case c.library == "" || c.absent:
				if library != c.library {
					t.Errorf("its library is %q, want %q", library, c.library)
				}
			default:
				if _, err := os.Stat(library); err != nil || !filepath.IsAbs(library) || filepath.Base(library) != c.library {
					t.Errorf("its library is %q, want the path of %q (%v)", library, c.library, err)
				}
			}
		})
	}
	if mpi, library := Of(python, os.Environ()); mpi != "" || library != "" {
		t.Errorf("Python needs %q, %q; want nothing", mpi, library)
	}
}

func TestVersioned(t *testing.T) {
	dir := t.TempDir()
	for to, from := range map[string]string{"libmpi.so.40": "libmpi.so.40.30", "libmpi.so.40.30": "libmpi.so.40.30.4", "libmpi.so": dir + "/far/libmpi.so.40", "loop": "loop"} {
		if err := os.Symlink(from, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	agenttest.WriteFile(t, dir+"/libmpi.so.40.30.4", "", 0o644)
	for from, to := range map[string]string{"libmpi.so.40": "libmpi.so.40.30.4", "libmpi.so.40.30.4": "libmpi.so.40.30.4", "libmpi.so": "libmpi.so", "absent": "absent", "loop": "loop"} {
		if got := Versioned(filepath.Join(dir, from)); got != filepath.Join(dir, to) {
			t.Errorf("%s: got %q, want %q in the same directory", from, got, to)
		}
	}
	if got := Versioned("libmpi.so.40"); got != "libmpi.so.40" {
		t.Errorf("a name alone became %q", got)
	}
}

func TestLoaderConfig(t *testing.T) {
	dir := t.TempDir()
	agenttest.WriteFile(t, dir+"/ld.so.conf", "/a # of the system\ninclude conf.d/*.conf\n\nrelative\ninclude "+dir+"/ld.so.conf [\nhwcap 1 nosegneg\n/z", 0o644)
	agenttest.WriteFile(t, dir+"/conf.d/2.conf", "\t/c\n", 0o644)
	agenttest.WriteFile(t, dir+"/conf.d/1.conf", "/b\n", 0o644)
	agenttest.WriteFile(t, dir+"/conf.d/other", "/x\n", 0o644)
	got := loaderConfig(dir + "/ld.so.conf") // the file includes itself
	if want := []string{"/a", "/z", "/b", "/c"}; len(got) < 4 || !slices.Equal(got[:4], want) {
		t.Errorf("got %q, want %q first", got, want)
	}
	if len(got) > 4*mostConfig {
		t.Errorf("%d directories", len(got))
	}
	if got := loaderConfig(dir + "/absent"); got != nil {
		t.Errorf("got %q of no file", got)
	}
}

// TestMarkedMPI checks that a mark is found at any place, even if it is divided between two reads.
func TestMarkedMPI(t *testing.T) {
	for _, before := range []int{0, 1, 256<<10 - 20, 256<<10 - 5, 256 << 10, 600 << 10} {
		data := append(bytes.Repeat([]byte{0}, before), "MPICH Version:\t4"...)
		if got := markedMPI(bytes.NewReader(data)); got != job.MPIMPICH {
			t.Errorf("after %d bytes: got %q", before, got)
		}
		if got := markedMPI(bytes.NewReader(data[:before+10])); got != "" {
			t.Errorf("half of it after %d bytes: got %q", before, got)
		}
	}
}

func BenchmarkMPIOf(b *testing.B) {
	for _, program := range []string{python, "/usr/bin/mpirun.openmpi"} {
		b.Run(filepath.Base(program), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Of(program, nil)
			}
		})
	}
}

// python is an interpreter that needs no MPI library.
const python = "/usr/bin/python3"

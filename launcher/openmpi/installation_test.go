package openmpi_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/gangrun/gangrun/launcher/openmpi"
)

func TestFindOfThisHost(t *testing.T) {
	want := openmpi.Installation{Mpirun: "/usr/bin/mpirun.openmpi", Daemon: "/usr/bin/orted", Version: "4.1", Major: 4}
	library, err := filepath.Glob("/usr/lib/*-linux-gnu/libmpi.so.40")
	if err != nil || len(library) == 0 {
		t.Fatalf("no libmpi.so.40 (install libopenmpi3): %v", err)
	}
	for _, test := range []struct {
		name, library string
		env           []string
	}{
		{"beside the library", library[0], nil},
		{"OPAL_PREFIX", "", []string{"OPAL_PREFIX=/absent", "OPAL_PREFIX=/usr"}},
		{"PATH", "", []string{"PATH=/absent:relative:/usr/bin"}},
		{"an absent library", "/no/such/place/at/all/libmpi.so.40", []string{"PATH=/usr/bin"}},
	} {
		if got, ok := openmpi.Find(test.library, test.env); !ok || got != want {
			t.Errorf("%s: %+v, %v, want %+v", test.name, got, ok, want)
		}
	}
	if got, ok := openmpi.Find("", nil); ok {
		t.Errorf("nowhere to look: %+v", got)
	}
}

func TestFindFamily(t *testing.T) {
	type file struct {
		name   string
		needed []string
	}
	tests := []struct {
		name  string
		files []file
		want  openmpi.Installation // the paths are relative to the directory; Major 0 means that nothing is found
	}{
		{"4", []file{{"mpirun", []string{"libopen-rte.so.40"}}, {"orted", nil}}, openmpi.Installation{Mpirun: "mpirun", Daemon: "orted", Major: 4}},
		{"4 without a daemon", []file{{"orterun", []string{"libopen-rte.so.40"}}}, openmpi.Installation{Mpirun: "orterun", Major: 4}},
		{"5 by PRRTE", []file{{"mpirun", []string{"libc.so.6", "libprrte.so.3"}}, {"prted", nil}}, openmpi.Installation{Mpirun: "mpirun", Daemon: "prted", Major: 5}},
		{"5 by OPAL", []file{{"mpirun", []string{"libopen-pal.so.80"}}, {"prted", nil}}, openmpi.Installation{Mpirun: "mpirun", Daemon: "prted", Major: 5}},
		{"5 by its neighbour", []file{{"mpirun", []string{"libc.so.6"}}, {"prted", nil}}, openmpi.Installation{Mpirun: "mpirun", Daemon: "prted", Major: 5}},
		{"hydra", []file{{"mpirun", []string{"libc.so.6"}}}, openmpi.Installation{}},
		{"Slurm's hydra beside a prted", []file{{"mpirun", []string{"libslurm.so.38"}}, {"prted", nil}}, openmpi.Installation{}},
		{"Debian's names", []file{{"mpirun", []string{"libslurm.so.38"}}, {"mpirun.openmpi", []string{"libopen-rte.so.40"}}, {"orted", nil}},
			openmpi.Installation{Mpirun: "mpirun.openmpi", Daemon: "orted", Major: 4}},
		{"OPAL alone", []file{{"mpirun", []string{"libopen-pal.so.40"}}}, openmpi.Installation{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range test.files {
				if err := os.WriteFile(filepath.Join(dir, file.name), needing(file.needed), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			want := test.want
			for _, path := range []*string{&want.Mpirun, &want.Daemon} {
				if *path != "" {
					*path = filepath.Join(dir, *path)
				}
			}
			got, ok := openmpi.Find("", []string{"PATH=" + dir})
			if got != want || ok != (want.Major != 0) {
				t.Errorf("%+v, %v, want %+v", got, ok, want)
			}
		})
	}
	t.Run("scripts, directories and files without the bit are none", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "mpirun"), []byte("#!/bin/sh\n"), 0o755)
		write(t, filepath.Join(dir, "orterun"), needing([]string{"libopen-rte.so.40"}), 0o644)
		if err := os.Mkdir(filepath.Join(dir, "mpirun.openmpi"), 0o755); err != nil {
			t.Fatal(err)
		}
		if got, ok := openmpi.Find("", []string{"PATH=" + dir}); ok {
			t.Errorf("%+v", got)
		}
	})
}

// TestFindBesideLibrary checks that the installation to which a library belongs is found before that in PATH. A
// symbolic link leads to the library.
func TestFindBesideLibrary(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"opt/bin", "opt/lib", "lib", "path"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "opt/bin/mpirun"), needing([]string{"libprrte.so.3"}), 0o755)
	write(t, filepath.Join(dir, "opt/lib/libmpi.so.40.40.5"), nil, 0o644)
	write(t, filepath.Join(dir, "path/mpirun"), needing([]string{"libopen-rte.so.40"}), 0o755)
	if err := os.Symlink("../opt/lib/libmpi.so.40.40.5", filepath.Join(dir, "lib/libmpi.so.40")); err != nil {
		t.Fatal(err)
	}
	got, ok := openmpi.Find(filepath.Join(dir, "lib/libmpi.so.40"), []string{"PATH=" + filepath.Join(dir, "path")})
	if want := (openmpi.Installation{Mpirun: filepath.Join(dir, "opt/bin/mpirun"), Version: "5.0", Major: 5}); !ok || got != want {
		t.Errorf("%+v, %v, want %+v", got, ok, want)
	}
}

func write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

// needing returns an ELF file that only has the names of the libraries that it needs. It has a header, a section of
// dynamic entries, and a section of their names.
func needing(names []string) []byte {
	le := binary.LittleEndian
	texts, dynamic := []byte{0}, []byte{}
	for _, name := range names {
		dynamic = le.AppendUint64(le.AppendUint64(dynamic, 1), uint64(len(texts))) // DT_NEEDED
		texts = append(append(texts, name...), 0)
	}
	dynamic = append(dynamic, make([]byte, 16)...) // DT_NULL
	const header, section = 64, 64
	dynamicAt, textsAt := uint64(header+3*section), uint64(header+3*section+len(dynamic))
	data := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	for _, half := range []uint16{2, 62} { // ET_EXEC, x86-64
		data = le.AppendUint16(data, half)
	}
	data = le.AppendUint32(data, 1)
	for _, word := range []uint64{0, 0, header} { // entry, segments, sections
		data = le.AppendUint64(data, word)
	}
	data = le.AppendUint32(data, 0)
	for _, half := range []uint16{header, 0, 0, section, 3, 2} {
		data = le.AppendUint16(data, half)
	}
	add := func(kind uint32, offset, size uint64, link uint32, entry uint64) {
		data = le.AppendUint32(le.AppendUint32(data, 0), kind)
		for _, word := range []uint64{0, 0, offset, size} {
			data = le.AppendUint64(data, word)
		}
		data = le.AppendUint32(le.AppendUint32(data, link), 0)
		data = le.AppendUint64(le.AppendUint64(data, 1), entry)
	}
	add(0, 0, 0, 0, 0)
	add(6, dynamicAt, uint64(len(dynamic)), 2, 16) // SHT_DYNAMIC
	add(3, textsAt, uint64(len(texts)), 0, 0)      // SHT_STRTAB
	return append(append(data, dynamic...), texts...)
}

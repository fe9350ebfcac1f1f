package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/internal/job"
)

// lammpsMagic begins and ends a restart file of LAMMPS.
const lammpsMagic = "LammpS RestartT\x00"

// lammpsFiles stands in the header of a restart before the number of files that
// lie beside the base.
const lammpsFiles = 44

// checkLAMMPS checks that a restart file ends as it begins. One that was
// written through MPI-IO has no such end.
func checkLAMMPS(f *file, path string) error {
	if strings.Contains(filepath.Base(path), ".mpiio") {
		return nil
	}
	return checkLAMMPSEnd(f)
}

func checkLAMMPSEnd(f *file) error {
	end, err := f.Bytes(f.Size-int64(len(lammpsMagic)), int64(len(lammpsMagic)))
	if err != nil {
		return flaw.Truncated("its header", err)
	}
	if string(end) != lammpsMagic {
		return flaw.Flaw("truncated: it does not end like a restart file of LAMMPS")
	}
	return nil
}

// A restart of many files has "%" in the name that LAMMPS is given. It stands
// for "base" in the name of the first file and for the numbers of the others.

// lammpsSet returns the name of the restart of many files whose base lies at
// path. A base that was cut off is none: it is refused as a file.
func lammpsSet(path string) (set string, ok bool) {
	dir, name := filepath.Split(path)
	at := strings.LastIndex(name, "base")
	if at < 0 {
		return "", false
	}
	f, done, err := openFile(context.Background(), path)
	if err != nil {
		return "", false
	}
	defer done()
	head, err := f.Bytes(0, int64(len(lammpsMagic)))
	if err != nil || string(head) != lammpsMagic {
		return "", false
	}
	_, err = countLAMMPS(f)
	return dir + name[:at] + "%" + name[at+len("base"):], err == nil
}

// lammpsBase returns the first file of the restart of that name.
func lammpsBase(set string) (path string, ok bool) {
	path = lammpsFile(set, "base")
	_, err := os.Stat(path)
	return path, path != set && err == nil
}

// lammpsFile returns the file of a restart that has that in the place of "%".
func lammpsFile(set, part string) string {
	dir, name := filepath.Split(set)
	return dir + strings.Replace(name, "%", part, 1)
}

// verifyLAMMPS checks that every file of a restart is there and whole.
func verifyLAMMPS(ctx context.Context, set, base string) (job.Checkpoint, error) {
	info, err := os.Stat(base)
	if err != nil {
		return job.Checkpoint{}, err
	}
	c := job.Checkpoint{Format: formatLAMMPS, Time: info.ModTime()}
	check := func(path string, look func(*file) error) error {
		f, done, err := openFile(ctx, path)
		if errors.Is(err, fs.ErrNotExist) {
			return flaw.New("%s is missing", filepath.Base(path))
		}
		if err != nil {
			return err
		}
		defer done()
		c.Bytes += f.Size
		return flaw.Within(filepath.Base(path), look(f))
	}
	files := 0
	err = check(base, func(f *file) (err error) { files, err = countLAMMPS(f); return err })
	for i := 0; i < files && err == nil; i++ {
		err = check(lammpsFile(set, strconv.Itoa(i)), checkLAMMPSEnd)
	}
	return c, err
}

// countLAMMPS returns the number of files that a base says lie beside it. The
// base ends with flags and values, then the end of its header, then the magic.
func countLAMMPS(f *file) (int, error) {
	if err := checkLAMMPSEnd(f); err != nil {
		return 0, err
	}
	at := f.Size - int64(len(lammpsMagic)) - 4
	for range 4 { // of which the last few are about files
		if at -= 8; at < 0 {
			break
		}
		pair, err := f.Bytes(at, 12)
		if err != nil {
			return 0, err
		}
		if n := int32(le.Uint32(pair[4:])); int32(le.Uint32(pair)) == lammpsFiles && n > 0 && n <= maxMembers {
			return int(n), nil
		}
	}
	return 0, flaw.Flaw("it does not say how many files lie beside it")
}

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

// lammpsMagic is at the beginning and at the end of a restart file of LAMMPS.
const lammpsMagic = "LammpS RestartT\x00"

// lammpsFiles is the number that comes, in a restart's header, before the number of files beside the base.
const lammpsFiles = 44

// checkLAMMPS checks that a restart file ends with the magic with which it begins. A file that was written
// through MPI-IO does not end with it.
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

// LAMMPS writes a restart to several files if the name that it is given has a "%". In the name of the first
// file, "base" replaces the "%". In the names of the other files, a number does.

// lammpsSet returns the name of the restart whose base file is at path. ok is false if the base file was
// truncated. gangrun then checks it as a single file, and refuses it.
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

// lammpsBase returns the base file of a restart.
func lammpsBase(set string) (path string, ok bool) {
	path = lammpsFile(set, "base")
	_, err := os.Stat(path)
	return path, path != set && err == nil
}

// lammpsFile returns the file of a restart that has part in place of the "%".
func lammpsFile(set, part string) string {
	dir, name := filepath.Split(set)
	return dir + strings.Replace(name, "%", part, 1)
}

// verifyLAMMPS checks that every file of a restart exists and is complete.
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

// countLAMMPS returns the number of files that lie beside a base, as the base says it. The base ends with pairs
// of a flag and a value, the end of its header, and the magic.
func countLAMMPS(f *file) (int, error) {
	if err := checkLAMMPSEnd(f); err != nil {
		return 0, err
	}
	at := f.Size - int64(len(lammpsMagic)) - 4
	for range 4 { // the number is in one of the last few pairs
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

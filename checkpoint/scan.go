package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
)

// Scan returns the possible checkpoints of a directory, the newest first. After them, it returns the files and
// directories that have the name of a temporary file. If each rank writes its own file, each of these files
// counts as a possible checkpoint of its own. Scan reads only the first bytes of files.
func Scan(dir string) ([]saves.Found, error) {
	all, _, err := separate(dir)
	if err != nil {
		return nil, err
	}
	unfinished, err := temporaries(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found := make([]saves.Found, 0, len(all)+len(unfinished))
	add := func(c job.Checkpoint, files int, unfinished bool) {
		found = append(found, saves.Found{
			Path: c.Path, Step: c.Step, Kind: candidate{path: c.Path}.kind(), Bytes: c.Bytes,
			Files: files, Time: c.Time, Born: born(c.Path), Unfinished: unfinished,
		})
	}
	for _, c := range all {
		add(c.describe(), len(c.files), false)
	}
	for _, l := range unfinished {
		add(l.Checkpoint, 1, true)
	}
	return found, nil
}

// describe describes a candidate that was not verified.
func (c candidate) describe() job.Checkpoint {
	d := job.Checkpoint{Path: c.path, Step: c.step, Bytes: c.files.bytes(), Time: c.time}
	if c.files == nil { // a name that stands for several files, or the directory that is a checkpoint itself
		if files, err := c.members(); err == nil {
			d.Bytes = files.bytes()
			if newest := files.newest(); newest.After(d.Time) {
				d.Time = newest
			}
		}
	}
	return d
}

// members returns the files of a candidate whose name stands for several files, or of the examined directory
// itself.
func (c candidate) members() (tree, error) {
	if c.dir {
		return lookAt(c.path)
	}
	var all tree
	for _, name := range c.own(filepath.Dir(c.path)) {
		files, err := lookAt(filepath.Join(filepath.Dir(c.path), name))
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// born returns the time at which a file was created. It returns the zero time if the file system does not
// record it.
func born(path string) time.Time {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_BTIME, &st); err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
}

// Examine verifies the possible checkpoint at path in the directory dir. As List does, it compares the
// checkpoint with the older ones. It does not look at the numbers of tensors. small is true if the checkpoint
// is suspect only because of its size. The error wraps fs.ErrNotExist if the checkpoint is no longer there.
func Examine(ctx context.Context, dir, path string) (l Listed, small bool, err error) {
	all, _, err := separate(dir)
	if err != nil {
		return Listed{}, false, err
	}
	i := slices.IndexFunc(all, func(c candidate) bool { return c.path == path })
	if i < 0 {
		return Listed{}, false, fmt.Errorf("%q: %w", path, fs.ErrNotExist)
	}
	all[i].others = nil // the caller knows which files belong together
	j := all[i].judge(ctx, all[i+1:], false)
	switch {
	case ctx.Err() != nil:
		return Listed{}, false, ctx.Err()
	case errors.Is(j.err, fs.ErrNotExist):
		return Listed{}, false, j.err
	case j.err != nil:
		j.found = all[i].describe()
	}
	return Listed{Checkpoint: j.found, Verdict: j.verdict, Why: j.why}, j.small, nil
}

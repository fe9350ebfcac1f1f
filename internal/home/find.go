package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
)

// idForm matches the name of a run's directory. It matches no other name that somebody may put beside it.
var idForm = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-([a-z0-9-]+-)?[0-9a-f]{4}$`)

// runs returns the runs of the home at dir, newest first. It returns none if there is no home at dir.
func runs(dir string) ([]Run, error) {
	all := filepath.Join(dir, "runs")
	entries, err := os.ReadDir(all)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the runs' home: %w", err)
	}
	type made struct {
		Run
		at time.Time
	}
	var found []made
	for _, e := range entries {
		m := made{Run: Run{e.Name(), filepath.Join(all, e.Name())}}
		if !idForm.MatchString(e.Name()) || !e.IsDir() && !linked(all, e) {
			continue
		}
		// The job file is written only once. So its time orders the runs of the same second.
		if info, err := os.Stat(m.JobPath()); err == nil {
			m.at = info.ModTime()
		}
		found = append(found, m)
	}
	slices.SortFunc(found, func(a, b made) int {
		if c := strings.Compare(b.ID[:len(stamp)], a.ID[:len(stamp)]); c != 0 {
			return c
		}
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return strings.Compare(b.ID, a.ID)
	})
	out := make([]Run, len(found))
	for i, m := range found {
		out[i] = m.Run
	}
	return out, nil
}

// linked reports whether an entry of dir is a link to a directory elsewhere. A run that was moved to another disk may
// have such a link. A link to a run in dir itself does not count, because it is only a second name of that run.
func linked(dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return false
	}
	target, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
	if err != nil {
		return false
	}
	own, err := filepath.EvalSymlinks(dir)
	if err != nil || filepath.Dir(target) == own {
		return false
	}
	info, err := os.Stat(target)
	return err == nil && info.IsDir()
}

// Find returns a run of the home at dir. text is the run's ID, or a beginning that no other ID
// has. "last" and "" mean the newest run.
func Find(dir, text string) (Run, error) {
	if r, ok := exactly(dir, text); ok {
		return r, nil
	}
	all, err := runs(dir)
	if err != nil {
		return Run{}, err
	}
	if len(all) == 0 {
		return Run{}, failure.Hinted("gangrun run starts one; if it was started with another GANGRUN_HOME, set that",
			"there are no runs in %q", dir)
	}
	if text == "" || text == "last" {
		return all[0], nil
	}
	var begin, near []Run
	for _, r := range all {
		switch {
		case strings.HasPrefix(r.ID, text):
			begin = append(begin, r)
		case strings.Contains(r.ID, strings.ToLower(text)):
			near = append(near, r)
		}
	}
	switch {
	case len(begin) == 1:
		return begin[0], nil
	case len(begin) > 1:
		return Run{}, failure.Hinted("give more of the ID", "%q is the beginning of %d runs: %s", text, len(begin), some(begin))
	case len(near) > 0:
		return Run{}, failure.Hinted("near to it: "+some(near), "there is no run whose ID begins with %q", text)
	default:
		return Run{}, failure.Hinted("the newest are: "+some(all), "there is no run whose ID begins with %q", text)
	}
}

// exactly returns the run with the ID id. It does not list the home, which may have thousands of runs.
func exactly(dir, id string) (r Run, ok bool) {
	if !idForm.MatchString(id) {
		return Run{}, false
	}
	all := filepath.Join(dir, "runs")
	r = Run{id, filepath.Join(all, id)}
	info, err := os.Lstat(r.Dir)
	return r, err == nil && (info.IsDir() || linked(all, fs.FileInfoToDirEntry(info)))
}

// some returns the IDs of the first few runs.
func some(all []Run) string {
	const most = 4
	var ids []string
	for _, r := range all[:min(len(all), most)] {
		ids = append(ids, r.ID)
	}
	if len(all) > most {
		ids = append(ids, "...")
	}
	return strings.Join(ids, ", ")
}

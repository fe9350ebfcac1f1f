package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/checkpoint/naming"
)

// Keep says which good checkpoints stay when the others are removed.
type Keep struct {
	Newest int // how many of the newest checkpoints stay
	// Checkpoints whose step is a multiple of Every stay, too. If Every is 0, only the newest checkpoints stay.
	Every int64
}

// ParseKeep parses a rule such as "keep=3,every=1000".
func ParseKeep(text string) (Keep, error) {
	k := Keep{Newest: 1}
	given := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 1 || given[key] {
			return k, fmt.Errorf("%q is no rule: each of keep and every has a number from 1 on", part)
		}
		switch given[key] = true; key {
		case "keep":
			k.Newest = int(n)
		case "every":
			k.Every = n
		default:
			return k, fmt.Errorf("%q is no rule: there are keep and every", part)
		}
	}
	return k, nil
}

// Superfluous returns those checkpoints of list that k does not keep. list is a result of List. Superfluous
// never returns the newest good checkpoint, a checkpoint that a file or link beside it names, a checkpoint
// whose name says that it is the best, or a checkpoint that is not good. It keeps a file if no newer good file has
// the same name with other numbers, because the job may have written that file only once. Checkpoints of the same
// step count as one, because a job may write several files at a step.
func (k Keep) Superfluous(list []Listed) (out []Listed) {
	good := 0
	rank := map[int64]int{}    // the rank of each step; 1 is the newest
	newer := map[string]bool{} // the patterns of the names so far
	for _, l := range list {
		if l.Verdict != Good {
			continue
		}
		place, same := rank[l.Step]
		if !same || l.Step < 0 {
			good++
			place, rank[l.Step] = good, good
		}
		name := filepath.Base(l.Path)
		pattern := naming.Pattern(name)
		again := newer[pattern]
		newer[pattern] = true
		switch {
		case !again, place <= max(k.Newest, 1), l.Newest, len(l.Own) == 0, l.NamedBy != "", finest().MatchString(name):
		case k.Every > 0 && l.Step >= 0 && l.Step%k.Every == 0:
		default:
			out = append(out, l)
		}
	}
	return out
}

// Remove deletes the files of l, a checkpoint that List has returned for dir. It deletes nothing outside of
// dir. It returns an error if the checkpoint has changed since List verified it, or if l.Own is empty.
func Remove(dir string, l Listed) error {
	if len(l.Own) == 0 {
		return fmt.Errorf("%q is not removed: its files cannot be told from others", l.Path)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	changed, err := newest(dir, l.Own)
	if err != nil {
		return err
	}
	if changed.After(l.Time) {
		return fmt.Errorf("%q is not removed: it has changed since it was verified", l.Path)
	}
	var failed error
	for _, name := range l.Own {
		if !filepath.IsLocal(name) || strings.ContainsRune(name, filepath.Separator) {
			return fmt.Errorf("%q is not removed: %q is not in %q", l.Path, name, dir)
		}
		failed = errors.Join(failed, root.RemoveAll(name))
	}
	return failed
}

// newest returns the time of the last change of the files and directories in own.
func newest(dir string, own []string) (at time.Time, err error) {
	for _, name := range own {
		files, err := lookAt(filepath.Join(dir, name))
		if err != nil && (files == nil || errors.Is(err, fs.ErrNotExist)) {
			return at, err
		}
		if t := files.newest(); t.After(at) {
			at = t
		}
	}
	return at, nil
}

package preflight

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// services are variables that keep a trial from writing to services that record experiments. See
// the documentation of each service. gangrun does not replace values that are set already.
var services = []string{
	"WANDB_MODE=disabled",
	"MLFLOW_TRACKING_URI=file:///tmp/gangrun-trial-mlruns",
	"COMET_MODE=DISABLED",
	"COMET_START_ONLINE=0",
	"NEPTUNE_MODE=offline",
	"CLEARML_OFFLINE_MODE=1",
	"SWANLAB_MODE=disabled",
}

// contained returns what the ranks of a contained trial find, and the path of their checkpoint directory. This
// is usually the job's checkpoint directory, which is empty in the trial. If the job needs something in that
// directory, it is another directory, which exists only for the trial.
func contained(spec job.Spec, command []string, run string) (job.Containment, string) {
	c := job.Containment{Work: []string{spec.Workdir}}
	for _, word := range command {
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		}
		if strings.Contains(word, "{{") {
			continue
		}
		path := filepath.Join(spec.Workdir, word)
		if info, err := os.Stat(path); filepath.IsAbs(word) {
			c.Needed = append(c.Needed, filepath.Clean(word))
		} else if err == nil && info.Mode().IsRegular() { // on this machine; the hosts of the job may have other files
			c.Needed = append(c.Needed, path)
		}
	}
	for _, input := range spec.Inputs {
		if !filepath.IsAbs(input) {
			input = filepath.Join(spec.Workdir, input)
		}
		c.Needed = append(c.Needed, filepath.Clean(input))
	}
	dir := spec.CheckpointDir
	if dir == "" {
		return c, ""
	}
	c.Work = append(c.Work, dir)
	holds := func(path string) bool { return path != dir && (strings.HasPrefix(path, dir+"/") || dir == "/") }
	if spec.Workdir == dir || holds(spec.Workdir) || slices.ContainsFunc(c.Needed, holds) {
		return c, "/tmp/gangrun-checkpoints-" + run
	}
	c.Empty = dir
	return c, dir
}

// directories returns the directories that a command names, as far as this machine can see them,
// without the job's inputs. Most of them are directories to which the job writes.
func directories(spec job.Spec, command []string) (dirs []string) {
	for _, word := range command {
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		}
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(spec.Workdir, word)
		}
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() || word == "" || path == "/" || slices.Contains(spec.Inputs, word) || slices.Contains(spec.Inputs, path) {
			continue
		}
		if path = filepath.Clean(path); path != spec.Workdir && !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	return dirs
}

// mayBeContainment reports whether a contained attempt may have failed because it was contained.
// The reason may be something that overlayfs or user namespaces cannot do, files that differ from
// those of the gang, or the empty checkpoint directory.
func mayBeContainment(cause job.Cause, o job.Outcome, a job.Attempt) bool {
	says := func(texts ...string) bool {
		return slices.ContainsFunc(o.Lines, func(l job.Line) bool {
			return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(l.Text, text) })
		})
	}
	switch {
	case cause.Category == job.StorageError, says(containmentErrors...):
		return true
	case missingInput(cause):
		return blurred(o, a) || a.Contain.Empty != "" && says(a.Contain.Empty, filepath.Base(a.Contain.Empty)+"/")
	}
	return false
}

// blurred reports whether a contained attempt may have failed for a reason that the gang does not
// have: ranks could not see what ranks on another host wrote, or could not write some of the user's
// files.
func blurred(o job.Outcome, a job.Attempt) bool { return len(a.Placement.Hosts) > 1 || o.Mixed }

// containmentErrors has the C library's texts of errors that a contained rank may get although other ranks do
// not get them.
var containmentErrors = []string{
	"Value too large for defined data type", // EOVERFLOW: a file of another user would have to be copied
	"Invalid cross-device link",             // EXDEV: a directory or a file cannot be moved from one layer to another
	"Device or resource busy",               // EBUSY: a directory that was covered by itself cannot be removed
	"setuid",                                // a program must become root
	"Operation not permitted",               // EPERM: there is one user, and no root
	"Read-only file system",                 // a file system that could not be covered
	"Stale file handle",                     // ESTALE: the file system below has changed
}

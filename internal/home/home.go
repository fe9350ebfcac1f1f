// Package home manages the directory of runs: a subdirectory for each run, with its
// job file, its journal, its reports and its ranks' logs.
package home

import (
	"fmt"
	"path/filepath"

	"github.com/gangrun/gangrun/internal/failure"
)

// Dir returns gangrun's home. This is $GANGRUN_HOME if that is set, otherwise
// $XDG_STATE_HOME/gangrun if $XDG_STATE_HOME is an absolute path, otherwise
// ~/.local/state/gangrun. The directory need not exist.
func Dir(getenv func(string) string) (string, error) {
	if dir := getenv("GANGRUN_HOME"); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("GANGRUN_HOME is %q: %w", dir, err)
		}
		return abs, nil
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "gangrun"), nil
	}
	const hint = "set GANGRUN_HOME to a directory in which gangrun may keep its runs"
	switch dir := getenv("HOME"); {
	case dir == "":
		return "", failure.Hinted(hint, "there is no place for the run's records: neither GANGRUN_HOME nor XDG_STATE_HOME nor HOME is set")
	case !filepath.IsAbs(dir):
		return "", failure.Hinted(hint, "there is no place for the run's records: HOME is %q, which is not an absolute path", dir)
	default:
		return filepath.Join(dir, ".local", "state", "gangrun"), nil
	}
}

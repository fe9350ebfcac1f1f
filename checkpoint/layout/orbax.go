package layout

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// Names of files of Orbax, and of the OCDBT database to which it writes arrays.
const (
	OrbaxCommit   = "_CHECKPOINT_METADATA"
	OrbaxTree     = "_METADATA"
	OrbaxManifest = "manifest.ocdbt"
)

var orbaxProcess = re(`^ocdbt\.process_(\d+)/`)

// CheckOrbax checks a directory of Orbax. commit is the content of the file OrbaxCommit. It is empty if there
// is no such file.
func (s Set) CheckOrbax(commit []byte) error {
	if s.has(orbaxProcess()) {
		if g := gap(flat(s.numbers(orbaxProcess()))); g >= 0 {
			return missing(fmt.Sprintf("ocdbt.process_%d", g), "others have higher numbers")
		}
		if !s.Has(OrbaxManifest) {
			return missing(OrbaxManifest, "the files of its processes were not merged")
		}
		for _, name := range s.Names {
			if dir := orbaxProcess().FindString(name); dir != "" && !s.Has(dir+OrbaxManifest) {
				return missing(dir+OrbaxManifest, "its process has not finished")
			}
		}
	}
	if len(commit) > 0 {
		var times map[string]any
		if err := json.Unmarshal(commit, &times); err != nil {
			return flaw.New("%s: it cannot be read: %v", OrbaxCommit, err)
		}
		if at, ok := times["commit_timestamp_nsecs"]; ok && at == nil {
			return flaw.New("%s has no time of a commit: it was not finished", OrbaxCommit)
		}
	}
	if s.Has(OrbaxTree) && !s.Has(OrbaxManifest) && !s.arrays() {
		return flaw.New("its %s names arrays, but there are none: %s is missing", OrbaxTree, OrbaxManifest)
	}
	if s.Has(OrbaxCommit) && len(s.Names) == 1 {
		return flaw.New("it has nothing but %s", OrbaxCommit)
	}
	return nil
}

// arrays reports whether arrays have their own directories, as older versions of Orbax write them.
func (s Set) arrays() bool {
	for _, name := range s.Names {
		base := path.Base(name)
		if base != OrbaxTree && base != OrbaxCommit && base != "_sharding" && !strings.HasPrefix(name, "array_metadatas/") {
			return true
		}
	}
	return false
}

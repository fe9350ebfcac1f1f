package naming

import (
	"fmt"
	"path/filepath"
	"strings"
)

// quoted matches the names of checkpoints in TensorFlow's file "checkpoint".
var quoted = re(`model_checkpoint_paths?: *"([^"]+)"`)

// Places returns the names that the checkpoint at path can have in dir: the last element of path and, if path is in a
// directory of dir, the name of that directory. A path that is not absolute is relative to dir.
func Places(dir, path string) []string {
	all := []string{filepath.Base(path)}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if below, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(below) {
		if first, _, deeper := strings.Cut(below, string(filepath.Separator)); deeper {
			all = append(all, first)
		}
	}
	return all
}

// Pointed returns the names of checkpoints that the content of a small file in dir, such as latest, can mean.
func Pointed(dir, content string) (all []string) {
	for _, found := range quoted().FindAllStringSubmatch(content, -1) {
		all = append(all, Places(dir, found[1])...)
	}
	word := strings.TrimSpace(content)
	if all != nil || word == "" || strings.ContainsAny(word, "\n") {
		return all
	}
	all = Places(dir, word)
	if n := Number(word); n >= 0 { // the content may be that of Megatron's tracker
		all = append(all, fmt.Sprintf("iter_%07d", n), fmt.Sprintf("global_step_%d", n), fmt.Sprintf("global_step%d", n))
	}
	return all
}

// Package layout checks checkpoints that consist of several files. It checks the names of the files, and a few
// numbers in the files. It knows the layouts of DeepSpeed, Megatron, the Trainer of Hugging Face, and Orbax.
package layout

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// The formats of directories, as job.Checkpoint names them.
const (
	DeepSpeed = "deepspeed"
	Universal = "deepspeed-universal"
	Megatron  = "megatron"
	Trainer   = "hf-trainer"
	Orbax     = "orbax"
)

// re returns a regular expression that is compiled when it is first used.
func re(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// Set is a directory in the layout of a program.
type Set struct {
	Format string
	Dir    string   // path relative to the checkpoint; "." is the checkpoint itself
	Names  []string // sorted paths, relative to Dir, of the files below it
}

// Has reports whether the set has a file with that name.
func (s Set) Has(name string) bool { _, ok := slices.BinarySearch(s.Names, name); return ok }

// has reports whether the pattern matches a name of the set.
func (s Set) has(pattern *regexp.Regexp) bool {
	return slices.ContainsFunc(s.Names, pattern.MatchString)
}

// formats has the names by which formats are recognised. More specific formats come first.
var formats = []struct {
	format string
	mark   func() *regexp.Regexp
}{
	{Universal, re(`^zero/.+/fp32\.pt$`)},
	{DeepSpeed, re(`^(mp_rank_\d+|zero_pp_rank_\d+_mp_rank_\d+|layer_\d+-model_\d+-|layer_\d+_expert_\d+_mp_rank_\d+)_?model_states\.pt$|^[^/]*_mp_rank_\d+_optim_states\.pt$`)},
	{Megatron, re(`^mp_rank_\d+(_\d+)*/(model_optim_rng|model_rng|distrib_optim|optim)\.pt$`)},
	{Orbax, re(`^(_CHECKPOINT_METADATA|_METADATA|manifest\.ocdbt|ocdbt\.process_\d+/.*)$`)},
	{Trainer, re(`^(trainer_state\.json|training_args\.bin|config\.json|adapter_config\.json)$`)},
}

// others matches directories that the Trainer writes beside a model and that do not belong to the model.
var others = re(`^(checkpoint-\d+|runs)/`)

// Find returns the sets of a checkpoint. names are the sorted names of its files. Each file is in at most one
// set of each format. Outer directories come first.
func Find(names []string) (sets []Set) {
	dirs := map[string][]string{}
	for _, name := range names {
		for at := name; at != "."; {
			at = path.Dir(at)
			dirs[at] = append(dirs[at], strings.TrimPrefix(name, strings.TrimPrefix(at+"/", "./")))
		}
	}
	for _, dir := range slices.SortedFunc(maps.Keys(dirs), func(a, b string) int { return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a, b)) }) {
		within := Set{Dir: dir, Names: dirs[dir]}
		slices.Sort(within.Names)
		for _, f := range formats {
			if !within.has(f.mark()) || f.format == Trainer && !within.has(weights()) {
				continue
			}
			if within.Format = f.format; f.format == Trainer {
				within.Names = slices.DeleteFunc(slices.Clone(within.Names), others().MatchString)
			}
			sets = append(sets, within)
			break
		}
	}
	return sets
}

func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return 1 + strings.Count(dir, "/")
}

// numbers returns, for each name that matches the pattern, the numbers that the groups of the pattern match.
func (s Set) numbers(pattern *regexp.Regexp) (all [][]int) {
	for _, name := range s.Names {
		found := pattern.FindStringSubmatch(name)
		if found == nil {
			continue
		}
		var row []int
		for _, digits := range found[1:] {
			n, err := strconv.Atoi(digits)
			if err != nil {
				n = -1 // the group has no number, or one that is too large
			}
			row = append(row, n)
		}
		all = append(all, row)
	}
	return all
}

// gap returns the smallest number, from 0 on, that is missing below the largest of some numbers. It returns
// -1 if none is missing.
func gap(numbers []int) int {
	sorted := slices.Compact(slices.Sorted(slices.Values(numbers)))
	for i, n := range sorted {
		if n != i {
			return i
		}
	}
	return -1
}

// missing returns the flaw of a missing file.
func missing(name, why string, args ...any) error {
	return flaw.New("%s is missing: %s", name, fmt.Sprintf(why, args...))
}

// Package layout knows how programs lay out checkpoints of many files: DeepSpeed, Megatron, the Trainer of
// Hugging Face, Orbax. It decides by the names of files alone, and by a few numbers that stand in them.
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

// Set is a directory that a program has laid out.
type Set struct {
	Format string
	Dir    string   // below the checkpoint; "." is the checkpoint itself
	Names  []string // of the files in and below it, below Dir, sorted
}

// Has reports whether the set has a file of that name.
func (s Set) Has(name string) bool { _, ok := slices.BinarySearch(s.Names, name); return ok }

// has reports whether a name of the set matches.
func (s Set) has(pattern *regexp.Regexp) bool {
	return slices.ContainsFunc(s.Names, pattern.MatchString)
}

// formats says by which names the formats are recognised, the most special first.
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

// others are directories that the Trainer writes beside a model and that are no part of it.
var others = re(`^(checkpoint-\d+|runs)/`)

// Find returns what programs have laid out in a checkpoint, by the sorted names of its files. Every file is
// in at most one set of each format; the outermost directories come first.
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

// numbers are what groups of a pattern are in the names that match it.
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
				n = -1 // too long, or none
			}
			row = append(row, n)
		}
		all = append(all, row)
	}
	return all
}

// gap returns the smallest number from 0 on that is not among some numbers below their largest, -1 for none.
func gap(numbers []int) int {
	sorted := slices.Compact(slices.Sorted(slices.Values(numbers)))
	for i, n := range sorted {
		if n != i {
			return i
		}
	}
	return -1
}

// missing is the flaw of a file that is not there.
func missing(name, why string, args ...any) error {
	return flaw.New("%s is missing: %s", name, fmt.Sprintf(why, args...))
}

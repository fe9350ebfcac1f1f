package layout

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// Tracker is the name of a file beside Megatron's checkpoints. It has the iteration of the last checkpoint that
// all ranks have written.
const Tracker = "latest_checkpointed_iteration.txt"

var (
	megatronRank = re(`^mp_rank_(\d+)(?:_(\d+))?(?:_(\d+))?$`)
	iteration    = re(`^(?:iter|global_step)_?0*(\d+)$`)
)

// MegatronSays has numbers of ranks from the arguments in a Megatron checkpoint. A number that is not known
// is 0.
type MegatronSays struct{ Tensor, Pipeline int64 }

// MegatronFile returns the file from which MegatronSays is read.
func (s Set) MegatronFile() string {
	for _, name := range s.Names {
		if base := path.Base(name); base == "model_optim_rng.pt" || base == "model_rng.pt" {
			return name
		}
	}
	return ""
}

// CheckMegatron checks a checkpoint in Megatron's older format. For each combination of a tensor-parallel, a
// pipeline-parallel and an expert-parallel rank, the checkpoint must have one directory. All directories must
// have the same files.
func (s Set) CheckMegatron(says MegatronSays) error {
	files := map[string]map[string]bool{} // by directory
	all := map[string]string{}            // files, each with a directory that has it
	var sizes [3][]int
	for _, name := range s.Names {
		dir, file, _ := strings.Cut(name, "/")
		found := megatronRank().FindStringSubmatch(dir)
		if found == nil || strings.Contains(file, "/") || path.Ext(file) != ".pt" {
			continue
		}
		if files[dir] == nil {
			files[dir] = map[string]bool{}
			for i, digits := range found[1:] {
				if n, err := strconv.Atoi(digits); err == nil {
					sizes[i] = append(sizes[i], n)
				}
			}
		}
		files[dir][file] = true
		if all[file] == "" || dir < all[file] {
			all[file] = dir
		}
	}
	want := 1
	for _, ranks := range sizes {
		if g := gap(ranks); g >= 0 {
			return flaw.New("there is no rank %d of %s: others have higher numbers", g, dirs(files))
		}
		if len(ranks) > 0 {
			want *= slices.Max(ranks) + 1
		}
	}
	if len(files) != want {
		return flaw.New("%s are %d of %d directories of ranks", dirs(files), len(files), want)
	}
	for i, n := range []int64{says.Tensor, says.Pipeline} {
		have := int64(1)
		if len(sizes[i]) > 0 {
			have = int64(slices.Max(sizes[i]) + 1)
		}
		if n > 0 && n != have {
			return flaw.New("it has %d %s-parallel ranks, but %d have trained", have, []string{"tensor", "pipeline"}[i], n)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(files)) {
		for _, file := range slices.Sorted(maps.Keys(all)) {
			if !files[dir][file] {
				return missing(dir+"/"+file, "%s has it", all[file])
			}
		}
	}
	return nil
}

// dirs names the first and the last directory.
func dirs(files map[string]map[string]bool) string {
	names := slices.Sorted(maps.Keys(files))
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s to %s", names[0], names[len(names)-1])
}

// CheckTracker compares the name of a checkpoint with the content of the tracker. Megatron writes the tracker
// after all ranks have written their files. So a checkpoint with a higher iteration than the tracker's is not
// complete.
func CheckTracker(name, tracker string) error {
	found := iteration().FindStringSubmatch(name)
	if found == nil {
		return nil
	}
	step, err1 := strconv.ParseInt(found[1], 10, 64)
	last, err2 := strconv.ParseInt(strings.TrimSpace(tracker), 10, 64)
	if err1 == nil && err2 == nil && step > last {
		return flaw.New("%s is at %d, which is written last: it was not finished", Tracker, last)
	}
	return nil
}

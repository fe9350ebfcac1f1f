package layout

import (
	"fmt"
	"path"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

var (
	plainModel  = re(`^mp_rank_(\d+)_model_states\.pt$`)
	zeroModel   = re(`^zero_pp_rank_(\d+)_mp_rank_(\d+)_model_states\.pt$`)
	zeroOptim   = re(`^(?:bf16_|fp16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt$`)
	expertOptim = re(`^expp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt$`)
	layerModel  = re(`^layer_(\d+)-model_(\d+)-model_states\.pt$`)
	expertModel = re(`^layer_(\d+)_expert_(\d+)_mp_rank_(\d+)_model_states\.pt$`)
)

// DeepSpeedSays has numbers from the pickles of a DeepSpeed checkpoint. A number that is not known is 0.
type DeepSpeedSays struct {
	Partitions int64 // number of files with optimizer states for each model-parallel rank (partition_count)
	ModelRanks int64 // number of model-parallel ranks (mp_world_size)
	// Optimizer is true if the files of the model also have the states of the optimizer. This is so if the job
	// does not use ZeRO.
	Optimizer bool
	// Known is true if a file of the model was read.
	Known bool
}

// DeepSpeedFiles returns the file of the model and the file of the optimizer from which DeepSpeedSays is
// read. A name is "" if there is no such file.
func (s Set) DeepSpeedFiles() (model, optimizer string) {
	for _, name := range s.Names {
		switch {
		case model == "" && (plainModel().MatchString(name) || zeroModel().MatchString(name)):
			model = name
		case optimizer == "" && zeroOptim().MatchString(name):
			optimizer = name
		}
	}
	return model, optimizer
}

// CheckDeepSpeed checks that every rank has written its files. The file "latest" does not prove that, because
// rank 0 writes it before the last barrier.
func (s Set) CheckDeepSpeed(says DeepSpeedSays) error {
	ranks, whole := s.numbers(plainModel()), s.numbers(zeroModel())
	optim := s.numbers(zeroOptim())
	if len(ranks) == 0 && len(whole) == 0 {
		return missing("mp_rank_00_model_states.pt", "there are only optimizer states")
	}
	if says.ModelRanks > 0 && len(ranks) > 0 && int64(len(ranks)) != says.ModelRanks {
		return flaw.New("it has the model states of %d model-parallel ranks, but %d have trained", len(ranks), says.ModelRanks)
	}
	models := map[int]bool{}
	var firsts []int
	for _, r := range ranks {
		models[r[0]], firsts = true, append(firsts, r[0])
	}
	for _, r := range append(whole, optim...) {
		models[r[1]], firsts = true, append(firsts, r[1])
	}
	if g := gap(firsts); g >= 0 {
		return missing(fmt.Sprintf("mp_rank_%02d_model_states.pt", g), "others have higher numbers")
	}
	name := func(kind string) func(rank, model int) string {
		return func(rank, model int) string { return fmt.Sprintf("zero_pp_rank_%d_mp_rank_%02d_%s", rank, model, kind) }
	}
	if err := s.partitions(whole, len(models), says.Partitions, name("model_states.pt")); err != nil {
		return err
	}
	if err := s.partitions(optim, len(models), says.Partitions, name("optim_states.pt")); err != nil {
		return err
	}
	switch {
	case len(whole) > 0 && len(optim) != len(whole):
		return flaw.New("it has %d files of model states, but %d of optimizer states", len(whole), len(optim))
	case len(ranks) > 0 && len(optim) > 0 && len(ranks) != len(models):
		return missing(fmt.Sprintf("mp_rank_%02d_model_states.pt", len(models)-1), "that rank has optimizer states")
	case len(optim) == 0 && len(s.numbers(expertOptim())) == 0 && says.Known && !says.Optimizer:
		return missing(name("optim_states.pt")(0, 0), "the optimizer states are nowhere else")
	}
	return s.layers()
}

// partitions checks that there is a file for every pair of a rank and a model-parallel rank, both from 0 on.
// files has the pairs for which there are files.
func (s Set) partitions(files [][]int, models int, want int64, name func(rank, model int) string) error {
	if len(files) == 0 {
		return nil
	}
	most := int(want)
	byModel := make([][]int, models)
	for _, f := range files {
		byModel[f[1]] = append(byModel[f[1]], f[0])
		if most == 0 || want == 0 {
			most = max(most, f[0]+1)
		}
	}
	for model, ranks := range byModel {
		switch g := gap(ranks); {
		case g >= 0:
			return missing(name(g, model), "others have higher numbers")
		case len(ranks) < most:
			return missing(name(len(ranks), model), "there are %d of %d files of model-parallel rank %d", len(ranks), most, model)
		case want > 0 && int64(len(ranks)) > want:
			return flaw.New("%s is one too many: %d ranks have written the optimizer states: the directory may have files of two runs", name(int(want), model), want)
		}
	}
	return nil
}

// layers checks the files of pipeline layers and of experts. Every layer must have the same number of files.
func (s Set) layers() error {
	counts := map[int][]int{}
	most := 0
	for _, l := range s.numbers(layerModel()) {
		counts[l[0]] = append(counts[l[0]], l[1])
		most = max(most, l[1]+1)
	}
	for _, l := range s.numbers(layerModel()) {
		if ranks := counts[l[0]]; gap(ranks) >= 0 || len(ranks) < most {
			g := gap(ranks)
			if g < 0 {
				g = len(ranks)
			}
			return missing(fmt.Sprintf("layer_%02d-model_%02d-model_states.pt", l[0], g), "other layers have it")
		}
	}
	experts := map[int][]int{}
	for _, e := range s.numbers(expertModel()) {
		experts[e[0]] = append(experts[e[0]], e[1])
	}
	for _, e := range s.numbers(expertModel()) {
		if g := gap(experts[e[0]]); g >= 0 {
			return missing(fmt.Sprintf("layer_%d_expert_%d_mp_rank_%02d_model_states.pt", e[0], g, e[2]), "others have higher numbers")
		}
	}
	return nil
}

// CheckUniversal checks a universal checkpoint, which ds_to_universal makes. It must have a directory for
// each parameter and the files of the model, and the directory tmp must have no pieces left.
func (s Set) CheckUniversal() error {
	params := map[string]map[string]bool{}
	states := map[string]string{} // states of the optimizer, each with a parameter that has it
	for _, name := range s.Names {
		dir, file := path.Split(name)
		switch {
		case strings.HasPrefix(name, "tmp/"):
			return flaw.New("its pieces are still in tmp: it was not finished")
		case !strings.HasPrefix(name, "zero/") || dir == "zero/" || path.Ext(file) != ".pt":
			continue
		}
		param := strings.TrimSuffix(dir, "/")
		if params[param] == nil {
			params[param] = map[string]bool{}
		}
		params[param][file] = true
		if states[file] == "" {
			states[file] = param
		}
	}
	for _, name := range s.Names { // in order, so that the result does not depend on chance
		param := strings.TrimSuffix(name, "/"+path.Base(name))
		for _, file := range []string{"fp32.pt", "exp_avg.pt", "exp_avg_sq.pt", "step.pt"} {
			if have := params[param]; have != nil && !have[file] && states[file] != "" {
				return missing(param+"/"+file, "%s has it", states[file])
			}
		}
	}
	if g := gap(flat(s.numbers(plainModel()))); g >= 0 || !s.has(plainModel()) {
		return missing(fmt.Sprintf("mp_rank_%02d_model_states.pt", max(g, 0)), "it is copied last")
	}
	return nil
}

func flat(rows [][]int) (all []int) {
	for _, r := range rows {
		all = append(all, r[0])
	}
	return all
}

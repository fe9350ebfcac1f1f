package layout

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

var (
	// weights matches files with weights that transformers and peft write.
	weights = re(`^(model|pytorch_model|adapter_model|tf_model|flax_model)(-\d+-of-\d+|\.fp16|\.bf16)?\.(safetensors|bin|h5|msgpack)$`)
	// plainFiles matches files beside the weights that have no state of the training.
	plainFiles = re(`(\.(json|txt|model|md|py|jinja|tiktoken)|^training_args\.bin)$`)
	optimizers = re(`^(optimizer(_\d+)?\.(pt|bin)|optimizer(_\d+)?/.+|global_step\d+/.+|optimizer\.safetensors|pytorch_model_fsdp.*|user_content\.pt)$`)
	rngState   = re(`^rng_state_(\d+)\.pth$`)
	globalStep = re(`"global_step"\s*:\s*(\d+)`)
	stepInName = re(`^checkpoint-(\d+)$`)
)

// WeightsOnly reports whether the set has the weights of a model, but no state of the training. A job can
// load such weights, but it cannot resume the training.
func (s Set) WeightsOnly() bool {
	for _, name := range s.Names {
		if !weights().MatchString(name) && !plainFiles().MatchString(path.Base(name)) {
			return false
		}
	}
	return true
}

// CheckTrainer checks a checkpoint of the Trainer of Hugging Face. name is the name of its directory. state
// is the content of trainer_state.json, which the Trainer writes last.
func (s Set) CheckTrainer(name string, state []byte) error {
	if s.WeightsOnly() {
		return nil
	}
	if !s.Has("training_args.bin") && !s.Has("trainer_state.json") {
		return nil // the checkpoint is of another program
	}
	if !s.has(optimizers()) {
		return missing("optimizer.pt", "there are other states of a training")
	}
	if !s.Has("trainer_state.json") {
		return missing("trainer_state.json", "it is written last")
	}
	if s.Has("optimizer.pt") && !s.Has("scheduler.pt") {
		return missing("scheduler.pt", "without it, the optimizer is not loaded")
	}
	ranks := flat(s.numbers(rngState()))
	if g := gap(ranks); g >= 0 {
		return missing(fmt.Sprintf("rng_state_%d.pth", g), "others have higher numbers")
	}
	if s.Has("scheduler.pt") && len(ranks) == 0 && !s.Has("rng_state.pth") {
		return missing("rng_state.pth", "it is written after scheduler.pt")
	}
	inState, inName := last(globalStep(), string(state)), last(stepInName(), name)
	if inState >= 0 && inName >= 0 && inState != inName {
		return flaw.New("its trainer_state.json is of step %d: the directory may have files of two runs", inState)
	}
	return nil
}

// last returns the number in the last match of the pattern. It returns -1 if there is no match.
func last(pattern *regexp.Regexp, text string) int64 {
	all := pattern.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return -1
	}
	n, err := strconv.ParseInt(all[len(all)-1][1], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// CheckFiles checks that no file of a series "-I-of-N" is missing. It does not check a series if an index names
// its files.
func (s Set) CheckFiles() error {
	seen := map[string][]int{}
	for _, name := range s.Names {
		found := numbered().FindStringSubmatch(name)
		if found == nil {
			continue
		}
		i, err1 := strconv.Atoi(found[2])
		n, err2 := strconv.Atoi(found[3])
		if err1 != nil || err2 != nil || n > 1<<20 {
			continue
		}
		key := found[1] + "|" + found[3] + "|" + found[4]
		seen[key] = append(seen[key], i-1)
		if slices.Max(seen[key]) >= n {
			return flaw.New("%s has a number beyond its %d", name, n)
		}
	}
	for _, name := range s.Names {
		found := numbered().FindStringSubmatch(name)
		if found == nil {
			continue
		}
		n, _ := strconv.Atoi(found[3])
		have := seen[found[1]+"|"+found[3]+"|"+found[4]]
		if len(have) > 0 && len(have) < n {
			g := gap(have)
			if g < 0 {
				g = len(have)
			}
			return missing(fmt.Sprintf("%s-%0*d-of-%s%s", found[1], len(found[2]), g+1, found[3], found[4]), "there are %d of %d", len(have), n)
		}
	}
	return nil
}

var numbered = re(`^(.*)-(\d{5})-of-(\d{5})(\.(?:safetensors|bin))$`)

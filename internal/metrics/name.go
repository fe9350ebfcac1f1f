package metrics

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/gangrun/gangrun/internal/curve/judge"
)

// Meaning is the meaning of a series, as far as its name tells it.
type Meaning struct {
	Signal judge.Signal
	// Higher is true if higher values are better. It is valid only if Known is true.
	Higher, Known bool
	// Training is true if the series is a metric of training data other than the loss. Such a series is not a
	// signal, but gangrun judges a run by it if the run has nothing else.
	Training bool
	// Order orders the series of one signal. gangrun judges the run by the series with the lowest Order.
	Order int
}

var (
	otherData  = words("val valid validation eval evaluation test testing dev heldout")
	lowerWords = words("loss nll ppl perplexity err error mse mae rmse wer cer bpb bpc fid kl logloss mlogloss merror crossentropy xent energy")
	highWords  = words("acc accuracy top1 top5 acc1 acc5 f1 bleu rouge rougel auc auroc reward return iou miou dice r2 psnr ssim map recall precision mcc score mrr ndcg")
	workWords  = words("throughput wps ups tps tflops tgs sps fps mfu ips")
	ofTraining = words("acc accuracy top1 top5 acc1 acc5 f1 bleu rouge rougel auc auroc reward iou miou dice r2 psnr ssim mcc mrr ndcg nll ppl perplexity mse mae rmse wer cer bpb bpc")
	indirect   = words("policy actor critic reward rewards rew return returns episode episodes episodic generator discriminator gan ppo dqn sac td3 kld elbo vae")
	beside     = words("value q td entropy kl g d vf qf pg adv adversarial")
	per        = words("s sec second seconds gpu")
	noMetric   = words("time runtime eta elapsed count num total best min max smoothed std var weight coef coefficient lambda memory mem")
)

func words(text string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(text) {
		m[w] = true
	}
	return m
}

// tokens splits a name into words in lower case. Names are, for example, "val/mAP50-95", "evalLoss" and
// "tokens/s".
func tokens(name string) []string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		if i > 0 && i+1 < len(letters) && unicode.IsUpper(r) && unicode.IsLower(letters[i-1]) && unicode.IsLower(letters[i+1]) {
			b.WriteByte(' ')
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}

// MeaningOf returns the meaning of a series whose name is name. ok is false if no signal has such a name.
func MeaningOf(name string) (m Meaning, ok bool) {
	of := tokens(name)
	has := func(set map[string]bool) bool {
		for _, w := range of {
			if set[w] {
				return true
			}
		}
		return false
	}
	is := words(strings.Join(of, " "))
	m.Order = len(of)
	switch {
	case is["skipped"] && (is["iterations"] || is["steps"] || is["iters"] || len(of) == 1):
		m.Signal = judge.Skipped
		return m, true
	case (is["loss"] || is["grad"]) && is["scale"], is["scaler"], is["lossscale"]:
		m.Signal = judge.LossScale
		return m, true
	case is["lr"], is["learning"] && is["rate"], is["lr0"], is["learningrate"], is["pg0"]:
		m.Signal = judge.Rate
		return m, true
	case (is["grad"] || is["gradient"]) && is["norm"], is["gnorm"], is["gradnorm"]:
		m.Signal = judge.GradNorm
		return m, true
	case has(workWords), len(of) > 1 && per[of[len(of)-1]] && (is["samples"] || is["tokens"] || is["images"] || is["imgs"] || is["examples"] || is["it"] || is["steps"] || is["iterations"]):
		m.Signal, m.Higher, m.Known = judge.Throughput, true, true
		return m, true
	}
	lower, high := has(lowerWords), has(highWords)
	if !lower && !high || has(noMetric) {
		return m, false
	}
	m.Known, m.Higher = true, high && !lower
	if has(otherData) {
		m.Signal = judge.Validation
		m.Order += 10 * place(of)
		return m, true
	}
	if !is["loss"] && !is["nll"] {
		m.Training = has(ofTraining)
		return m, false // the training loss is a better signal than a training accuracy
	}
	m.Signal = judge.Train
	if !(is["train"] || is["training"] || is["lm"] || len(of) == 1) {
		m.Order += 5 // it may be only a part of the loss
	}
	return m, true
}

// Indirect reports whether the name of a series is typical of reinforcement learning, GANs or variational
// models. In these, the loss does not tell how good the model is.
func Indirect(name string) bool {
	of := tokens(name)
	loss, part := false, false
	for _, w := range of {
		if indirect[w] {
			return true
		}
		loss, part = loss || w == "loss", part || beside[w]
	}
	return loss && part
}

// place returns the order among metrics of validation. A loss comes before an accuracy, because it changes in
// smaller steps.
func place(of []string) int {
	for _, w := range of {
		switch w {
		case "loss", "nll", "logloss", "mlogloss", "crossentropy":
			return 0
		case "ppl", "perplexity", "mse", "rmse", "mae":
			return 1
		}
	}
	return 2
}

// counters has the names of columns and keys that count steps. Names of finer counts come first.
var counters = []string{"step", "global_step", "trainer/global_step", "train/global_step", "iteration", "iter", "num_updates", "update", "train_step",
	"total_timesteps", "timestep", "_step", "batch", "epoch"}

// clocks has the names of columns and keys with times.
var clocks = words("_timestamp timestamp wall_time walltime time _runtime runtime elapsed elapsed_time train_runtime seconds")

// keyed emits the values of a record, with its step and time.
func keyed(of map[string]float64, row int64, emit func(Point)) {
	at, counter := row, ""
	for _, name := range counters {
		if v, ok := of[name]; ok && v >= 0 && v < 1e15 {
			at, counter = int64(v), name
			if name == "epoch" && v != float64(at) {
				at, counter = row, ""
			}
			break
		}
	}
	when := 0.0
	for name := range clocks {
		if v, ok := of[name]; ok && v > 0 && (when == 0 || v > when) {
			when = v
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		v := of[name]
		if name != counter && name != "epoch" && !clocks[name] {
			emit(Point{Series: name, Step: at, Time: when, Value: v, ByEpoch: counter == "epoch"})
		}
	}
}

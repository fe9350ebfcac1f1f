// The corpus is not measured with the race detector, because that would take ten times as long.

//go:build !race

package judge

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDocument measures the verdicts on the corpus and compares docs/curves.md with the results. With
// UPDATE=1 in the environment it writes the page. No verdict that is sure may end a run that would have
// improved by more than 1 % afterwards.
func TestDocument(t *testing.T) {
	runs := corpus(t)
	all := slices.Concat(runs[:]...)
	var measures []*measured
	for i := range runs {
		m := measure(runs[i], all)
		measures = append(measures, m)
		for _, wrong := range slices.Concat(m.ends.wrongOnes, m.untold.wrongOnes) {
			t.Errorf("%s: a wrong stop: %s", parts[i], wrong)
		}
	}
	first, second := measures[0].plateau, measures[1].plateau
	if share := (first.savedNear + second.savedNear) / (first.spent + second.spent); share < 0.4 {
		t.Errorf("plateaus save %.1f %% of the GPU time", 100*share)
	}
	if len(all) < 120 {
		t.Errorf("the corpus has %d runs", len(all))
	}
	var want bytes.Buffer
	document(&want, measures)
	path := filepath.Join("..", "..", "..", "docs", "curves.md")
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("docs/curves.md is not what was measured; run make docs")
	}
}

// parts has the names of the parts of the corpus.
var parts = []string{"work", "held", "other", "fresh"}

func document(w io.Writer, measures []*measured) {
	fmt.Fprint(w, introduction, live)
	total, kinds, schedules := 0, map[string]int{}, map[string]int{}
	row := func(name string, of func(m *measured) int) {
		fmt.Fprintf(w, "| %s |", name)
		for _, m := range measures {
			fmt.Fprintf(w, " %d |", of(m))
		}
		fmt.Fprintln(w)
	}
	for _, m := range measures {
		total += m.runs
		maps.Copy(kinds, m.kinds)
		maps.Copy(schedules, m.schedules)
	}
	fmt.Fprintf(w, corpusText, total)
	fmt.Fprintf(w, "| of the runs | %s |\n|%s\n", strings.Join(parts, " | "), strings.Repeat("---|", len(parts)+1))
	row("all", func(m *measured) int { return m.runs })
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		row(k, func(m *measured) int { return m.kinds[k] })
	}
	for _, k := range slices.Sorted(maps.Keys(schedules)) {
		row("learning rate: "+k, func(m *measured) int { return m.schedules[k] })
	}
	fmt.Fprint(w, precision)
	for i, name := range parts {
		m := measures[i]
		fmt.Fprintf(w, "\n### %s\n", strings.ToUpper(name[:1])+name[1:])
		fmt.Fprint(w, "| verdict | precision | recall | precision, if sure | recall, if sure |\n|---|---|---|---|---|\n")
		for _, k := range Kinds {
			switch k {
			case Slower:
				continue
			case BelowPeers:
				fmt.Fprintf(w, "| %s | %s | never sure | |\n", k, m.advice[k].cell())
			default:
				fmt.Fprintf(w, "| %s | %s | %s |\n", k, m.advice[k].cell(), m.sure[k].cell())
			}
			if k == Diverged {
				fmt.Fprintf(w, "| diverged, if gangrun sees no validations | %s | %s |\n", m.bare.cell(), m.bareSure.cell())
			}
		}
	}
	fmt.Fprint(w, wrongStops)
	fmt.Fprint(w, "| part | what gangrun knows | wrong stops | stops | GPU time saved |\n|---|---|---|---|---|\n")
	for i, name := range parts {
		for _, c := range []struct {
			told string
			s    stops
		}{{"steps, and from when the learning rate no longer falls", measures[i].ends}, {"steps", measures[i].untold}} {
			fmt.Fprintf(w, "| %s | %s | %d | %d of %d | %.0f %% |\n", name, c.told, c.s.wrong, c.s.stopped, c.s.runs, 100*c.s.saved/c.s.spent)
		}
	}
	fmt.Fprint(w, saving)
	for i, name := range parts {
		m := measures[i]
		fmt.Fprintf(w, "\n### %s\n", strings.ToUpper(name[:1])+name[1:])
		fmt.Fprint(w, "| rule | stopped | GPU time saved | GPU time saved by stops within 0.1 % of the final value | more than 0.1 % from the final value | more than 1 % from the best | median distance |\n|---|---|---|---|---|---|---|\n")
		fmt.Fprint(w, m.plateau.row("`plateau`, sure"))
		for _, rule := range ruleNames {
			fmt.Fprint(w, m.rules[rule].row(rule))
		}
	}
	fmt.Fprint(w, strings.TrimLeft(limits, "\n"))
}

const introduction = `# Curves
Written by TestDocument of internal/curve/judge; do not edit. ` + "`make docs`" + ` writes it anew.

` + "`gangrun curve FILE...`" + ` reads the metrics of a job, judges its curves, and plots them. In a directory, it reads at most 256 files, and only those with names that are usual for files of metrics ([While a job runs](#while-a-job-runs)). ` + "`gangrun curve RUN`" + ` reads what the ranks of a run have printed. ` + "`-o json`" + ` prints the same as JSON.

` + "```" + `
gangrun curve --decay-end 0 --target 0.95 logs/events.out.tfevents.1700000000.host
gangrun curve --metric val_loss --total 4000 metrics.csv
` + "```" + `

The exit code is 0 if no verdict is sure at the end of the curves, 2 if one is, 1 if no metric was found, and 64 if a file cannot be read or a flag is wrong.

## Where metrics are found
| source | what is read |
|---|---|
| output | the lines that [progress.md](progress.md) describes and lines about validation. gangrun reads every metric in them that this section names |
| TensorBoard | event files: scalars as ` + "`simple_value`" + ` and as tensors; every checksum is checked. If the directory is named ` + "`validation`, `eval`" + ` or similarly, the metrics are of validation data |
| CSV | also with tabs or semicolons, and then also with decimal commas; the first line names the columns |
| JSON lines | one object per line; ` + "`NaN` and `Infinity`" + ` as Python writes them |
| W&B | ` + "`run-*.wandb`" + ` of an offline run: the history |
| Hugging Face | ` + "`trainer_state.json`" + ` |
| MLPerf | ` + "`:::MLLOG`" + ` lines: ` + "`eval_accuracy`, `eval_loss`, `train_loss`" + `. For the benchmarks gpt3, llama2_70b_lora, llama31_405b, llama31_8b and flux1, ` + "`eval_accuracy`" + ` is a loss |

In the output, a loss such as ` + "`2,2932` or `0,385`" + ` has a decimal comma. ` + "`2,293`" + ` may be 2.293 or 2293, so gangrun ignores such a loss.

gangrun recognises the format of a file by its first bytes. If a file was truncated or replaced, gangrun reads it from the beginning. It reads a TensorBoard or W&B file up to the first wrong checksum.

gangrun knows the meaning of a metric by its name. A metric with ` + "`val`, `valid`, `validation`, `eval`, `test` or `dev`" + ` in its name is of validation data. Lower values are better if the name is that of a loss, an error or a perplexity. Higher values are better if the name is that of an accuracy, F1, BLEU, AUC, IoU, a reward or the like. For other names, say what is better: ` + "`--higher` or `--lower` for `gangrun curve`, `--goal max` or `--goal min` for `gangrun run`" + `. gangrun also knows the usual names of the learning rate, the gradient norm, the loss scale, the number of skipped steps and the throughput.

gangrun judges the run by a validation loss. If there is none, it uses another metric of validation, and if there is none, the training loss. If there is no loss at all, it uses a metric of training data: an accuracy, F1, BLEU, AUC, reward, perplexity or the like. ` + "`--metric NAME`" + ` chooses another metric. In the output of ranks, this metric may have any name, if a number follows the name.

The number of planned steps is that of the whole run. If the steps begin again with each epoch, as in ` + "`Epoch 2/5 step 10/200`" + `, this number is the product, 1000. In the first epoch, gangrun does not know yet that the steps begin again, and therefore does not know this number.

## Verdicts
A verdict has a confidence. If it is 90 % or more, the verdict is *sure*. Otherwise, the verdict is advice.

| verdict | when | sure |
|---|---|---|
| ` + "`not-finite`" + ` | the loss is NaN or infinite 5 times in a row; with a loss scale, 25 times at the start of the run and while the scale falls | if the loss itself is not finite. Never if only a validation metric, an accuracy or a reward is not finite |
| ` + "`diverged`" + ` | the loss has risen by at least 30 % of what it had fallen before, and by more than 8 standard deviations of its noise; it has stayed high for 2 % of the run and at least 50 steps, and does not fall again | if it has risen by 60 %, has stayed high for four times as long, and there is [strong evidence](#when-diverged-is-sure) |
| ` + "`flat`" + ` | neither the median nor the trend of the loss has fallen, and validation has not improved. Never in a warm-up | only if the gradient is zero |
| ` + "`plateau`" + ` | in the last 30 % of the GPU time, the metric has improved by less than 0.1 %. Never in a warm-up, never if the learning rate has changed in that time | if gangrun knows the step after which the learning rate no longer falls (` + "`--decay-end`" + `), and two upper estimates of the further improvement are both below 1 %. The first estimate is the improvement until the planned end if the metric goes on with the slope of the last 30 % plus twice the standard error of that slope. The second one is three standard deviations of the noise |
| ` + "`reached`" + ` | the target is reached | always |
| ` + "`will-miss`" + ` | gangrun fits power laws and a logarithm to the curve and to its second half. At the planned end, all of them are at least two standard deviations short of the target | if all of them are at least eight standard deviations short, the run is in its second half, and gangrun knows that the learning rate no longer falls |
| ` + "`below-peers`" + ` | for each of at least three earlier runs, gangrun takes the mean value up to the same step. The best value of this run is worse than the median of these means | never |
| ` + "`slower`" + ` | the throughput has been 20 % lower than before for at least 15 % of the run so far, for at least 30 steps and, while a job runs, for at least 20 s | never |

### When diverged is sure
Losses rise and stay high in many runs that are in order: when the task changes or becomes harder, when a part of the loss gets more weight, in reinforcement learning, in GANs, in variational models, in a warm-up, and if the job prints a sum of losses. So ` + "`diverged`" + ` is sure only in one of these cases:
- A validation has taken place since the loss became high. The loss had fallen before, and has now risen again by at least nine tenths of that fall. Both of the last two values of the validation metric are worse than the first value of that metric in the run, by more than 5 % of the difference between the first value and the best one.
- No validation has taken place since the loss became high. The loss had fallen before, and is now ten times as high as its highest value before this rise. It still rises, and the rise to this height has taken no longer than the time before the rise.
- No validation has taken place since the loss became high. The loss had fallen before, and is now a thousand times as high as its highest value before this rise.
- No validation has taken place in the whole run. The loss had fallen before, and is now higher than ever before. The norm of the gradient is a hundred times as high as before the loss rose.
- The loss has never fallen, and is now a thousand times as high as at first. Because a job may print the sum of its losses so far, which rises without a divergence, the loss must also be more than ten times as high as such a sum could be.

` + "`diverged`" + ` is never sure if the name of a metric in the job is typical of reinforcement learning, GANs or variational models: policy, actor, critic, reward, return, episode, generator, discriminator, ELBO and the like.

A loss that rises and falls again soon gives no verdict. In the training of BLOOM-176B, the loss rose from 2.2 to 5.1 and fell again within 30 steps.

Each verdict has a sentence that says what gangrun has found, and the number of GPU-hours that the run still needs until its planned end. Without GPUs, each rank counts as a GPU. For ` + "`slower`" + `, the number is that of the GPU-hours that the lower throughput costs until then. The numbers are missing if the duration of the steps or the number of planned steps is not known.
`

const corpusText = `
## The corpus
The rules for verdicts were tested on a corpus of curves. The curves are of small models that were trained for this purpose: multilayer perceptrons, convolutions, batch normalisation and linear models, on scikit-learn's data (digits, wine, breast cancer, iris, diabetes, and synthetic ones: moons, circles, classification, quantiles, regressions, Friedman and others). ` + "`internal/curve/judge/testdata/make_curves.py`" + ` trains them.

There are %d runs:
- *work* and *held*: two halves, divided by a hash of the name. The rules were written with the first half. The second half was measured when the rules were complete for the first time, and again after each change.
- *other*: other data, in two groups of 60. When the first group was measured for the first time, 1 of 32 stops was wrong: a network of sigmoids that begins to learn after 70 %% of its run was called flat. Since then, flat is never sure unless the gradient is zero. When the second group was measured for the first time, 2 of 38 stops were wrong: the validations were so noisy that a later value was better by chance. Since then, such a plateau is not sure.
- *fresh*: other data again. These runs were trained after the last change of a rule, and measured once.

The first rows of the table below count the kinds of runs:
- *healthy*: the run trains well. *slow*: the same, but the run is short, with a low learning rate, and ends before the loss stops falling.
- *late*: a network of sigmoids, whose loss begins to fall late.
- *overfit*: there is little training data, so the validation becomes worse while the training loss falls.
- *diverge*: the learning rate is far too high from the start. *diverge-late*: from a step between 30 %% and 60 %% of the run on, the learning rate grows until the run diverges.
- *spike*, *spike-long*: in the first fifth of the run, the labels, the inputs or the learning rate are wrong for some steps; for *spike-long*, for 20 steps or more.
- *stuck-dead*: the gradient is zero. *stuck-rate*: the learning rate is 1e-9. *stuck-labels*: the labels are shuffled, so the inputs say nothing about them.

The last rows count the schedules of the learning rate:
- *constant*; *warmup*: it rises in the first 5 %% of the run and is then constant; *cosine*: after such a rise, it falls to 0 like a cosine.
- *step*: it falls to a tenth at 40 %% of the run, and again at 70 %%. *early-step*: the same at 15 %% and at 30 %%.
- *wsd* (warm-up, stable, decay): it rises, stays constant up to 80 %% of the run, and then falls to 1 %%. *cyclic*: it rises and falls six times.
- *reduce*: it falls whenever the validation loss has stopped falling.

`

const precision = `
Whether a verdict is right follows from the complete run:
- ` + "`not-finite`" + `: the loss was not finite five times in a row. The rule of gangrun is the same, so the table only shows that gangrun misses no such run.
- ` + "`diverged` (or `not-finite`)" + `: in the last tenth, the median of the training loss is not finite, or it is above the lowest value by half of what the loss had fallen, and by 10 % of the lowest value.
- ` + "`flat`" + `: the run cannot learn because of a gradient of zero or a learning rate of 1e-9, or its loss was never 5 % lower than at the first step.
- ` + "`plateau`" + `: the best validation loss of the whole run is at most 1 % better than the best until the verdict. Runs without a verdict count as missed if they do not improve by 0.1 % in the last 30 % of their time, and their learning rate no longer falls after 60 %.
- ` + "`reached`, `will-miss`" + `: whether the whole run reaches a target. Each run is judged with four targets, from 20 % better than its best value to 10 % worse.
- ` + "`below-peers`" + `: the best value of the run is worse than the median of the best of the others with the same data and model.

` + "`slower`" + ` is tested with made-up throughputs.
`

const wrongStops = `
## Wrong stops
A wrong stop ends a run whose best validation loss would later have improved by more than 1 %. Here, every sure ` + "`not-finite`, `diverged`, `flat` and `plateau`" + ` ends the run.

`

const saving = `
## What a plateau saves
The tables below are for the runs whose learning rate no longer falls in the second half, and that neither diverge nor are stuck. The distance is how much better the final validation loss is than the best one until the stop. The final loss is the median of the last five validations. The last line is a rule that knows the complete run: it stops when the loss has come within 0.1 % of its best value. So if a rule saves more than the rule of the last line, it stops some runs too early. (In Philly's clusters, successful jobs used 62 % of their GPU time for the last 0.1 % of the loss; Jeon et al., 2019.)
`

const limits = `
`

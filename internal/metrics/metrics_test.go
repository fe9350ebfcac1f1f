package metrics

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/curve/judge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMeaning(t *testing.T) {
	type want struct {
		signal judge.Signal
		higher bool
	}
	for name, w := range map[string]want{
		"loss": {judge.Train, false}, "train/loss": {judge.Train, false}, "lm loss": {judge.Train, false}, "train_loss_epoch": {judge.Train, false},
		"val_loss": {judge.Validation, false}, "eval_loss": {judge.Validation, false}, "validation/epoch_loss": {judge.Validation, false},
		"val_accuracy": {judge.Validation, true}, "eval_f1": {judge.Validation, true}, "test/acc": {judge.Validation, true}, "val/mAP": {judge.Validation, true},
		"evalLoss": {judge.Validation, false}, "valid ppl": {judge.Validation, false}, "val_rmse": {judge.Validation, false},
		"learning_rate": {judge.Rate, false}, "lr": {judge.Rate, false}, "lr-AdamW": {judge.Rate, false}, "grad norm": {judge.GradNorm, false}, "gnorm": {judge.GradNorm, false},
		"loss scale": {judge.LossScale, false}, "loss_scale": {judge.LossScale, false}, "number of skipped iterations": {judge.Skipped, false},
		"tokens_per_second": {judge.Throughput, true}, "train_samples_per_second": {judge.Throughput, true}, "wps": {judge.Throughput, true}, "samples/sec": {judge.Throughput, true},
	} {
		m, ok := MeaningOf(name)
		if !ok || m.Signal != w.signal || m.Higher != w.higher {
			t.Errorf("%s is %+v, %v; want %+v", name, m, ok, w)
		}
	}
	for _, name := range []string{"", "epoch", "step", "eta", "val_time", "weights/max", "gpu memory", "accuracy", "best val loss", "loss_coefficient"} {
		if m, ok := MeaningOf(name); ok && name != "accuracy" {
			t.Errorf("%q is %+v", name, m)
		}
	}
	if _, ok := MeaningOf("accuracy"); ok {
		t.Error("an accuracy without a word for its data is taken for one of validation")
	}
	if a, _ := MeaningOf("val_loss"); a.Order >= func() int { b, _ := MeaningOf("val_accuracy"); return b.Order }() {
		t.Error("a loss does not come before an accuracy")
	}
}

// read writes a file, and returns its format and points.
func read(t *testing.T, name string, text []byte) (Format, []Point, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	f, points, err := ReadAll(context.Background(), path)
	return f.Format(), points, err
}

// say writes points in their order, with rounded values.
func say(points []Point) string {
	var all []string
	for _, p := range points {
		all = append(all, fmt.Sprintf("%s@%d=%.4g", p.Series, p.Step, p.Value))
	}
	return strings.Join(all, " ")
}

// TestText checks the points of text files as various programs write them.
func TestText(t *testing.T) {
	for _, c := range []struct {
		name, text string
		format     Format
		want       string
	}{
		{"metrics.csv", "epoch,step,train_loss,val_loss\n0,49,2.3,\n0,50,,2.1\n1,99,1.5,\n", CSV, "train_loss@49=2.3 val_loss@50=2.1 train_loss@99=1.5"}, // Lightning's CSVLogger
		{"log.csv", "epoch,accuracy,loss,val_accuracy,val_loss\n0,0.5,1.2,0.6,1.1\n1,0.6,nan,0.7,inf", CSV,
			"accuracy@0=0.5 loss@0=1.2 val_accuracy@0=0.6 val_loss@0=1.1 accuracy@1=0.6 loss@1=NaN val_accuracy@1=0.7 val_loss@1=+Inf"}, // Keras's CSVLogger
		{"results.csv", "   epoch,  train/box_loss,  val/box_loss\r\n 1, 1.5, 1.7\r\n", CSV, "train/box_loss@1=1.5 val/box_loss@1=1.7"}, // Ultralytics
		{"a.tsv", "step\tloss\n1\t0.5\n", CSV, "loss@1=0.5"},
		{"a.csv", "step;loss\n1;0.5\nstep;val_loss\n2;0.4\n", CSV, "loss@1=0.5 val_loss@2=0.4"},
		{"m.jsonl", `{"step": 1, "loss": 2.5, "note": "x"}` + "\n" + `{"step": 2, "loss": NaN, "eval": {"loss": -Infinity}}` + "\nbroken\n" + `{"step": 3, "loss": "inf"}`, JSONLines,
			"loss@1=2.5 eval/loss@2=-Inf loss@2=NaN loss@3=+Inf"},
		{"log.txt", `{"train_loss": 1.5, "test_acc1": 70.1, "epoch": 3, "n_parameters": 5}` + "\n", JSONLines, "n_parameters@3=5 test_acc1@3=70.1 train_loss@3=1.5"}, // DeiT, timm
		{"trainer_state.json", `{"max_steps": 90, "log_history": [
			{"epoch": 0.5, "grad_norm": 1.5, "learning_rate": 5e-05, "loss": 0.69, "step": 10}, {"epoch": 0.5, "eval_loss": 0.68, "eval_runtime": 3.1, "step": 10},
			{"epoch": 1.0, "loss": NaN, "step": 20}, {"epoch": 1.0, "train_loss": 0.5, "train_runtime": 20.1, "step": 20}]}`, HFState,
			"grad_norm@10=1.5 learning_rate@10=5e-05 loss@10=0.69 eval_loss@10=0.68 eval_runtime@10=3.1 loss@20=NaN"},
		{"out", " iteration       10/     100 | consumed samples:          640 | elapsed time per iteration (ms): 500.1 | learning rate: 1.500E-04 | lm loss: 2.117073E+00 | loss scale: 1024.0 | grad norm: 0.150 | number of skipped iterations:   1 | number of nan iterations:   0 |\n" +
			" validation loss at iteration 10 | lm loss value: 2.2E+00 | lm loss PPL: 9.0E+00 |\n", Output,
			"loss@10=2.117 learning rate@10=0.00015 loss scale@10=1024 grad norm@10=0.15 number of skipped iterations@10=1 validation lm loss value@10=2.2 validation lm loss ppl@10=9"},
		{"out", "step 250: train loss 2.4305, val loss 2.5102\niter 250: loss 2.40, time 20.1ms, mfu 3.1%\n", Output, "loss@250=2.43 val loss@250=2.51 loss@250=2.4 mfu@250=3.1"}, // nanoGPT
		{"out", "{'loss': 0.6, 'grad_norm': 2.5, 'learning_rate': 4e-05, 'epoch': 1.0}\n{'eval_loss': 0.55, 'eval_accuracy': 0.8, 'epoch': 1.0}\n", Output,
			"loss@1=0.6 grad_norm@1=2.5 learning_rate@1=4e-05 eval_loss@1=0.55 eval_accuracy@1=0.8"}, // HF Trainer
		{"out", "Epoch 3/10\n100/100 - 2s - 20ms/step - loss: 0.3105 - accuracy: 0.91 - val_loss: 0.3500 - val_accuracy: 0.9000\n", Output, "loss@100=0.3105 accuracy@100=0.91 val_loss@100=0.35 val_accuracy@100=0.9"},
		{"out", "Train Epoch: 2 [640/60000 (1%)]\tLoss: 0.301\nTest set: Average loss: 0.0500, Accuracy: 9840/10000 (98%)\n", Output, "loss@640=0.301 test average loss@640=0.05 test accuracy@640=9840"},
		{"out", `:::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "submission_benchmark", "value": "gpt3", "metadata": {}}` + "\n" +
			`:::MLLOG {"namespace": "", "time_ms": 2, "event_type": "POINT_IN_TIME", "key": "eval_accuracy", "value": 2.75, "metadata": {"samples_count": 512}}` + "\n", Output, "eval_loss@512=2.75"},
		{"out", `:::MLLOG {"key": "eval_accuracy", "value": 0.75, "metadata": {"epoch_num": 3}}` + "\n", Output, "eval_accuracy@3=0.75"},
		{"out", "step 3/9 accuracy 0.5\nstep 4/9 accuracy: 0.6\nstep 5/9 acc=0.7\nstep 6/9 f1=0.8 auc 0.9 bleu 30\n", Output, "accuracy@3=0.5 accuracy@4=0.6 acc@5=0.7 f1@6=0.8 auc@6=0.9 bleu@6=30"},
		{"out", "step 3/9 loss: 1.5 acc: 0.5 best_acc: 0.7 energy 5\nperplexity 7\n", Output, "loss@3=1.5 acc@3=0.5"},
		{"out", "step 3/9 policy_loss 0.1 value_loss 0.2 loss 0.3 reward 4\n", Output, "loss@3=0.3 policy_loss@3=0.1 value_loss@3=0.2 reward@3=4"},
		{"a.csv", "step,accuracy\n1,0.5\n", CSV, "accuracy@1=0.5"},
		{"out", "step 3/9 loss 2,2932 acc 0,5 throughput 1,234\nstep 4/9 loss 2,293\n", Output, "loss@3=2.293 acc@3=0.5 throughput@3=1234"},
		{"a.csv", "step;loss\n1;0,25\n2;0.5\n", CSV, "loss@1=0.25 loss@2=0.5"},
		{"hello.txt", "hello\nno numbers here\n", Output, ""},
		{"empty", "", Unknown, ""},
		{"a.json", `{"loss": 1}`, JSONLines, "loss@1=1"},
	} {
		format, points, err := read(t, c.name, []byte(c.text))
		if format != c.format || say(points) != c.want || err != nil {
			t.Errorf("%s %.60q:\n got %s %s, %v\nwant %s %s", c.name, c.text, format, say(points), err, c.format, c.want)
		}
	}
}

// TestNamed checks that a metric that was named is read in the output whatever its name means.
func TestNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	text := "zeal 9\nstep 3/9 loss 0.5 zeal 1.5 other 3\nepoch zeal: 2.5\nstep 4/9 the_zeal=3.5 zealous 4\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var points []Point
	_, err := Each(t.Context(), path, "zeal", func(p Point) { points = append(points, p) })
	if want := "loss@3=0.5 zeal@3=1.5 zeal@3=2.5 zeal@4=3.5"; say(points) != want || err != nil {
		t.Errorf("got %s, %v, want %s", say(points), err, want)
	}
}

func TestIndirect(t *testing.T) {
	for name, want := range map[string]bool{
		"policy_loss": true, "train/value_loss": true, "losses/td_loss": true, "rollout/ep_rew_mean": true, "episode_reward": true, "loss_D": true,
		"generator loss": true, "entropy_loss": true, "kl_loss": true,
		"loss": false, "train_loss": false, "lm loss": false, "value": false, "val_loss": false, "gradient": false, "d_model": false,
	} {
		if got := Indirect(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTotal checks that the planned steps are those of the count by which steps are counted.
func TestTotal(t *testing.T) {
	each := func(format string, epochs, steps int, of func(epoch, step int) int) (text string) {
		for e := 1; e <= epochs; e++ {
			for s := 1; s <= steps; s++ {
				text += fmt.Sprintf(format, e, of(e, s))
			}
		}
		return text
	}
	again := func(_, s int) int { return s }
	on := func(e, s int) int { return 20*(e-1) + s }
	for text, want := range map[string]int64{
		each("Epoch %d/5 step %d/20 loss 0.5\n", 5, 20, again):                                100,
		each("Epoch [%d/10], Step [%d/20], Loss: 0.5\n", 2, 20, again):                        200,
		each("Epoch [%d/10], Step [%d/20], Loss: 0.5\n", 1, 20, again):                        0, // the steps of the run, or of an epoch
		each("Epoch %d/5 step %d/100 loss 0.5\n", 2, 20, on):                                  100,
		each("Epoch %d/1 step %d/20 loss 0.5\n", 1, 20, again):                                20,
		each("Epoch %d step %d/20 loss 0.5\n", 3, 20, again):                                  0, // the number of epochs is not known
		each("Epoch %d step %d/100 loss 0.5\n", 3, 20, on):                                    100,
		"step 1/50 loss 0.5\nstep 2/50 loss 0.5\n":                                            50,
		"Epoch 1/5 loss 0.5\nEpoch 2/5 loss 0.5\n":                                            5,
		"Epoch 1/2\n20/20 [====] - 1s - loss: 0.5\nEpoch 2/2\n1/20 [=>..] - 1s - loss: 0.5\n": 40,
	} {
		path := filepath.Join(t.TempDir(), "out")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, points, err := ReadAll(t.Context(), path)
		if err != nil || f.Total() != want || len(points) == 0 {
			t.Errorf("%.60q: %d steps are planned, want %d; %v", text, f.Total(), want, err)
		}
	}
}

// TestGrows reads files of each format byte by byte. The points are the same as when the file is read at
// once.
func TestGrows(t *testing.T) {
	for name, text := range made(t) {
		_, want, err := read(t, name, text)
		if err != nil || len(want) < 3 {
			t.Fatalf("%s: %s, %v", name, say(want), err)
		}
		path := filepath.Join(t.TempDir(), name)
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		f := NewFile(path)
		var got []Point
		add := func(p Point) { got = append(got, p) }
		for len(text) > 0 {
			n := min(len(text), 1+len(text)%997)
			if _, err := file.Write(text[:n]); err != nil {
				t.Fatal(err)
			}
			text = text[n:]
			if err := f.Poll(context.Background(), add); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if f.Format() == HFState && len(text) > 0 {
				got = nil // this format is read as a whole each time
			}
		}
		if say(got) != say(want) {
			t.Errorf("%s: growing\n got %s\nwant %s", name, say(got), say(want))
		}
		// After it was truncated and written again, the file is read from the beginning.
		got = nil
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := file.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if err := f.Poll(context.Background(), add); err != nil || len(got) > 0 {
			t.Errorf("%s: truncated: %s, %v", name, say(got), err)
		}
		if _, err := file.WriteAt(whole, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Poll(context.Background(), add); err != nil || say(got) != say(want) {
			t.Errorf("%s: written again\n got %s, %v\nwant %s", name, say(got), err, say(want))
		}
		file.Close()
	}
}

// TestNothing checks that files without metrics have no points and give no error.
func TestNothing(t *testing.T) {
	for _, text := range [][]byte{nil, []byte("\n\n\n"), bytes.Repeat([]byte{0}, 100), []byte("a,b,c\n1,2,3\n"), bytes.Repeat([]byte("x"), 3<<20)} {
		if _, points, err := read(t, "file", text); err != nil || len(points) != 0 {
			t.Errorf("%.20q: %s, %v", text, say(points), err)
		}
	}
	f := NewFile(filepath.Join(t.TempDir(), "none"))
	if err := f.Poll(context.Background(), nil); err != nil {
		t.Errorf("no file: %v", err)
	}
	dir := NewFile(t.TempDir())
	if err := dir.Poll(context.Background(), nil); err == nil {
		t.Error("a directory is read")
	}
}

func FuzzFormats(f *testing.F) {
	files := made(f)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		f.Add(byte(i), files[name])
	}
	f.Fuzz(func(t *testing.T, which byte, text []byte) {
		whole := func(p Point) {
			if p.Series == "" && which%6 < 2 || p.Step < 0 {
				t.Errorf("point %+v", p)
			}
		}
		parsers := []func() parser{
			func() parser { return &tensorBoard{} }, func() parser { return &wandb{} }, func() parser { return &lines{each: (&table{}).line} },
			func() parser { return &lines{each: (&objects{}).line} }, func() parser { return &lines{each: (&output{at: -1}).line} },
		}
		if int(which%6) < len(parsers) {
			// In two pieces, the file has the same points as in one.
			var a, b []Point
			one, two := parsers[which%6](), parsers[which%6]()
			e1 := one.add(text, func(p Point) { whole(p); a = append(a, p) })
			e2 := two.add(text[:len(text)/2], func(p Point) { b = append(b, p) })
			if e2 == nil {
				e2 = two.add(text[len(text)/2:], func(p Point) { b = append(b, p) })
			}
			if (e1 == nil) != (e2 == nil) || say(a) != say(b) {
				t.Errorf("in one piece %s, %v; in two %s, %v", say(a), e1, say(b), e2)
			}
			return
		}
		_, _ = state(text, whole)
	})
}

// TestFrom: points that were in a file before are not reported, but its header counts.
func TestFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	old := "step,loss\n1,0.1\n2,0.2\n"
	if err := os.WriteFile(path, []byte(old+"3,0.3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var steps []int64
	f := NewFileFrom(path, int64(len(old)))
	if err := f.Poll(t.Context(), func(p Point) { steps = append(steps, p.Step) }); err != nil || !slices.Equal(steps, []int64{3}) {
		t.Errorf("got %v, %v", steps, err)
	}
}

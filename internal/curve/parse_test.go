package curve

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// want writes a Progress as "step/total epoch loss", with "-" for what the line does not have.
func want(p job.Progress) string {
	total, epoch, loss := "-", "-", "-"
	if p.Total != 0 {
		total = fmt.Sprint(p.Total)
	}
	if p.Epoch >= 0 {
		epoch = fmt.Sprint(p.Epoch)
	}
	if p.HasLoss() {
		loss = p.LossIs
	}
	if p.Loss != nil {
		loss += fmt.Sprint(*p.Loss)
	}
	return fmt.Sprintf("%d/%s %s %s", p.Step, total, epoch, loss)
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"plain", "step 21/300 loss 0.12", "21/300 - 0.12"},
		{"the example job", "step 40/1100 loss 0.8233 lr 0.099674", "40/1100 - 0.8233"},
		{"the example job's epochs", "epoch 1/25 test accuracy 0.8611", "1/25 1 -"},
		{"colon", "Step: 12", "12/- - -"},
		{"equals", "global_step=1200 loss=2.5e-1", "1200/- - 0.25"},
		{"logging prefix", "2024-05-01 12:33:01,123 INFO trainer.py:88 - step 15 | loss 1.25", "15/- - 1.25"},
		{"rank prefix", "[rank3]: iter 7 loss 3.5", "7/- - 3.5"},
		{"of", "Step 3 of 10: loss 4", "3/10 - 4"},
		{"thousands", "step 1,234/10,000 loss 0.5", "1234/10000 - 0.5"},
		{"nanogpt iter", "iter 250: loss 2.4310, time 131.11ms, mfu 12.01%", "250/- - 2.431"},
		{"nanogpt step", "step 250: train loss 2.4310, val loss 2.5011", "250/- - 2.431"},
		{"decimal comma", "step 12 loss 2,2932", "12/- - 2.2932"},
		{"decimal comma, less than one", "step 12/1,000 loss: 0,385, lr 0,1", "12/1000 - 0.385"},
		{"decimal comma, negative, with an exponent", "step 12 loss -1,5e-01 lr 0.1", "12/- - -0.15"},
		{"a comma of thousands or of a fraction", "step 12 loss 2,293", "12/- - -"},
		{"a comma of thousands or of a fraction, and another value", "step 12 loss 2,293, acc 0.5", "12/- - -"},
		{"commas of thousands", "step 12 loss 2,293.5", "12/- - -"},
		{"a comma between values", "step=12,loss=2,acc=3", "12/- - 2"},
		{"a comma between values in JSON", `{"step":12,"loss":2,"acc":3}`, "12/- - 2"},
		{"a list", "step 12 loss [2,3]", "12/- - 2"},
		{"loss that is no number", "step 12 loss nan", "12/- - nan"},
		{"Python's nan in a tensor", "Iteration 5: loss = tensor(nan, device='cuda:0', grad_fn=<NllLossBackward0>)", "5/- - nan"},
		{"C's nan", "step 12 loss -nan lr 0.1", "12/- - nan"},
		{"Fortran's nan", "step 12 loss:  NaN", "12/- - nan"},
		{"megatron's nan", " iteration       12/     100 | lm loss: NAN | loss scale: 1.0 | number of nan iterations:   1 |", "12/100 - nan"},
		{"a nan in a dictionary", "{'loss': nan, 'grad_norm': nan, 'learning_rate': 4.9e-05, 'epoch': 2.13}", "2/- 2 nan"},
		{"a nan in JSON", `{"step": 3, "loss": NaN}`, "3/- - nan"},
		{"an infinity in JSON", `{"step": 3, "loss": -Infinity, "lr": 0.1}`, "3/- - -inf"},
		{"a nan behind a bar", " 45%|####5     | 45/100 [00:12<00:15,  3.61it/s, loss=nan]", "45/100 - nan"},
		{"infinite loss", "step 12 loss -inf lr 0.1", "12/- - -inf"},
		{"infinite loss with its sign", "step 12 loss +Inf", "12/- - inf"},
		{"the whole is nan, a part is not", "step 12 cls_loss 0.5 total_loss nan box_loss 0.3", "12/- - nan"},
		{"a part is nan, the whole is not", "step 12 cls_loss nan loss 0.5", "12/- - 0.5"},
		{"the validation's is nan", "step 12 loss 0.5 val_loss nan", "12/- - 0.5"},
		{"a word that begins like nan", "step 12 loss info lr 0.1", "12/- - -"},
		{"gromacs", "step 100, remaining wall clock time:     2 s", "100/- - -"},
		{"gromacs, balancing", "imb F 12% pme/F 0.75 step 4100, will finish Thu Jan  1 12:00:00 2026", "4100/- - -"},
		{"cp2k", " MD| Step number                                                              12", "12/- - -"},
		{"cp2k, old", " STEP NUMBER                  =                                               12", "12/- - -"},
		{"mlperf", `:::MLLOG {"namespace": "", "time_ms": 1730000000000, "event_type": "POINT_IN_TIME", "key": "train_loss", "value": 1.25, "metadata": {"file": "train.py", "lineno": 12, "samples_count": 96, "lr": 0.0004}}`, "96/- - 1.25"},
		{"mlperf, nan", `:::MLLOG {"key": "train_loss", "value": NaN, "metadata": {"step": 7, "epoch_num": 1}}`, "7/- 1 nan"},
		{"mlperf, epoch", `:::MLLOG {"key": "epoch_start", "value": null, "metadata": {"file": "main.py", "lineno": 201, "epoch_num": 3}}`, "3/- 3 -"},
		{"mlperf, evaluation", `:::MLLOG {"key": "eval_accuracy", "value": 0.7, "metadata": {"epoch_num": 3, "lineno": 4}}`, "3/- 3 -"},
		{"negative loss", "step 12 loss: -0.25", "12/- - -0.25"},
		{"tensor", "Iteration 5: loss = tensor(0.5312, device='cuda:0', grad_fn=<NllLossBackward0>)", "5/- - 0.5312"},
		{"loss before step", "INFO:tensorflow:loss = 0.3125, step = 1200 (0.512 sec)", "1200/- - 0.3125"},
		{"only validation loss", "Epoch 3: val_loss=0.5, step 12", "12/- 3 -"},

		{"torch mnist", "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.298960", "640/60000 1 2.29896"},
		{"torch imagenet", "Epoch: [0][ 10/5005]\tTime  0.312 ( 2.112)\tData  0.001 ( 0.904)\tLoss 6.9943e+00 (7.0012e+00)\tAcc@1   0.00 (  0.11)", "10/5005 0 6.9943"},
		{"torchvision reference", "Epoch: [3]  [  120/5005]  eta: 0:42:11  lr: 0.1  img/s: 812.1  loss: 4.1021 (4.3350)  time: 0.31", "120/5005 3 4.1021"},
		{"tutorial", "Epoch [2/5], Step [100/600], Loss: 0.3412", "100/600 2 0.3412"},
		{"mmdetection", "2023-03-05 10:12:01,223 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.978e-03, eta: 13:50:04, time: 0.566, loss_cls: 1.2, loss: 1.9034", "50/7330 1 1.9034"},
		{"detectron2", "[12/05 10:33:21 d2.utils.events]:  eta: 0:12:00  iter: 19  total_loss: 1.204  loss_cls: 0.51  lr: 0.0001", "19/- - 1.204"},
		{"epoch alone", "Epoch 3/10", "3/10 3 -"},
		{"epoch in words", "Starting epoch 4", "4/- 4 -"},
		{"bracket alone", "[12/500]", "12/500 - -"},
		{"bracket with metric", "[ 12/500] loss: 0.5 acc: 0.9", "12/500 - 0.5"},
		{"batch", "Epoch 1 | Batch 20 | Loss 0.75", "20/- 1 0.75"},
		{"fairseq", "2021-01-01 00:00:01 | INFO | train_inner | epoch 001:     10 / 1332 loss=14.254, nll_loss=14.1, ppl=1.9e4, wps=1234", "10/1332 1 14.254"},

		{"megatron", " iteration       10/  500000 | consumed samples:          160 | elapsed time per iteration (ms): 812.4 | learning rate: 1.5E-06 | global batch size:    16 | lm loss: 1.052341E+01 | loss scale: 4294967296.0 | grad norm: 12.1 |", "10/500000 - 10.52341"},
		{"megatron, dated", " [2024-03-07 21:14:02] iteration        3/     100 | lm loss: 9.5E+00 |", "3/100 - 9.5"},
		{"deepspeed", "[2023-06-01 10:10:01,001] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[9.5e-06], mom=[(0.9, 0.95)]", "10/- - -"},
		{"lightning", "Epoch 0:  50%|█████     | 50/100 [00:01<00:01, 45.41it/s, v_num=3, train_loss=0.350]", "50/100 0 0.35"},
		{"lightning rich", "Epoch 2/9  ━━━━━━━━━━╺━━━━━━━━━ 12/100 0:00:01 • 0:00:12 45.40it/s v_num: 0.000 train_loss: 0.300", "12/100 2 0.3"},
		{"lightning checkpoint", "Epoch 1, global step 200: 'val_loss' reached 0.31 (best 0.31), saving model to '/ckpt/epoch=1-step=200.ckpt' as top 1", "200/- 1 -"},
		{"nemo", "Epoch 0: :   1%|▏ | 12/1000 [00:10<14:00, v_num=0, reduced_train_loss=10.90, global_step=3.2e+4]", "32000/- 0 10.9"},

		{"tqdm", " 45%|####5     | 45/100 [00:12<00:15,  3.61it/s, loss=0.3]", "45/100 - 0.3"},
		{"tqdm slow", "  1%|1         | 3/300 [00:12<20:15,  4.11s/it]", "3/300 - -"},
		{"tqdm unknown rate", "  0%|          | 0/300 [00:00<?, ?it/s]", "0/300 - -"},
		{"tqdm without total", "45it [00:12, 3.61it/s]", "45/- - -"},
		{"tqdm redrawn", " 44%|####4     | 44/100 [00:12<00:15,  3.61it/s]\r 45%|####5     | 45/100 [00:12<00:15,  3.61it/s]\r", "45/100 - -"},
		{"tqdm in colour", "\x1b[32m 45%|████▌     | 45/100 [00:12<00:15,  3.61it/s]\x1b[0m", "45/100 - -"},
		{"diffusers", "Steps:  12%|█▏        | 60/500 [00:40<04:50,  1.51it/s, lr=1e-5, step_loss=0.0213]", "60/500 - 0.0213"},
		{"hf trainer", "{'loss': 0.6931, 'grad_norm': 1.25, 'learning_rate': 4.9e-05, 'epoch': 2.13}", "2/- 2 0.6931"},
		{"hf trainer, strings", "{'loss': '0.6931', 'learning_rate': '4.9e-05', 'epoch': '0.1'}", "0/- 0 0.6931"},
		{"hf trainer behind its bar", "  0%|          | 10/5000 [00:12<10:15,  8.1it/s]\r{'loss': 0.6931, 'epoch': 0.1}", "0/- 0 0.6931"},
		{"json", `{"step": 3, "loss": 1.2}`, "3/- - 1.2"},
		{"json, epoch last", `{"train/loss": 1.2, "lr": 0.1, "trainer/global_step": 44, "epoch": 2}`, "44/- 2 1.2"},
		{"json, strings", `{"epoch": 1, "train_loss": "12.254", "num_updates": "100"}`, "100/- 1 12.254"},
		{"keras", "1563/1563 [==============================] - 5s 3ms/step - loss: 1.2043 - accuracy: 0.55", "1563/1563 - 1.2043"},
		{"keras, redrawn", "\x08\x08\x08 311/1563 [====>.........................] - ETA: 3s - loss: 1.5 - accuracy: 0.44", "311/1563 - 1.5"},
		{"keras 3", "\x1b[1m 313/1563\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m3s\x1b[0m 3ms/step - accuracy: 0.1 - loss: 2.3", "313/1563 - 2.3"},
		{"sklearn", "Iteration 1, loss = 0.69340012", "1/- - 0.69340012"},
		{"maxtext", "completed step: 12, seconds: 0.412, TFLOP/s/device: 101.2, Tokens/s/device: 9932.1, total_weights: 65536, loss: 10.302", "12/- - 10.302"},
		{"julia", "[ Info: Epoch 3  loss = 0.125", "3/- 3 0.125"},
		{"long line", strings.Repeat("x ", 5000) + "step 12/20 loss 0.5", "12/20 - 0.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, ok := Parse([]byte(c.line))
			if !ok {
				t.Fatalf("%q: no progress, want %s", c.line, c.want)
			}
			if got := want(p); got != c.want {
				t.Errorf("%q:\n got %s\nwant %s", c.line, got, c.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, line := range []string{
		"", "\r\n", "12", "[", "step", "epoch 3.5x",
		"2024-05-01 12:33:01,123 INFO hello", "192.168.1.1/24 is up", "ratio 1/2 of them", "1/2",
		"listening on 10.0.0.1:29500", "[12/05/2024 10:00:01] started", "[12/05] started", "[3/8] compiling",
		"[1/3] /usr/local/cuda/bin/nvcc -DTORCH_EXTENSION_NAME=fused -c a.cu -o a.o",
		"Step 1: Installing dependencies", "Step 2/5 : RUN pip install torch", "step 3) unpack", "Step 1 - load the data",
		"the first epoch takes longest", "one epoch later", "unix epoch 1700000000", "took 3 steps", "saves every epoch 10 times a day, see below.",
		"max_steps=300", "max step 300", "  num_train_epochs: 3", "epochs=10 batch_size=32", "warmup_steps: 100", "steps_per_epoch: 100",
		"Total optimization steps = 300", "logging every step 10", "batch size 32", "per_device_train_batch_size=8", "step_size 0.1", "learning step 0.3",
		" MD_PAR| Number of time steps                                             100000", " MD_PAR| Time step [fs]                                                 1.000000",
		" MD_PAR| Print MD information every                                    1 step(s)", " MD| Conserved quantity [hartree]                            -0.526611108254E-03",
		" MD| CPU time per MD step [s]                      0.001888             0.001888", " MD| Estimated peak process memory after this step [MiB]                     186",
		"the number of the step is 12", "maximum step number 100", "Step number 1: install the packages", "part number 12",
		"global_step/sec: 12.31", "3ms/step", "elapsed 12s", "iter 3.5s", "step time 0.31",
		"{'epoch': 10, 'batch_size': 32, 'name': 'resnet50'}", "{'eval_runtime': 3.1, 'eval_samples_per_second': 10}",
		"Resuming from step 100", "resumed from /ckpt/ckpt-000020.pt at step 20", "Loading checkpoint epoch 3", "=> loaded checkpoint 'model_best.pth.tar' (epoch 12)",
		"Restoring states from the checkpoint path at /ckpt/epoch=3-step=400.ckpt", "saved /ckpt/step-12.pt", "saved /ckpt/step_12", "saved /out/iter_0000100/mp_rank_00", "wrote /ckpt/step/12",
		"best epoch 12", "Validation step 3/10", "val epoch 3 loss 0.3", "Evaluating:  10%|#  | 1/10 [00:01<00:09, 1.0it/s]",
		"Validation DataLoader 0: 100%|##########| 10/10 [00:01<00:00, 9.9it/s]", "Sanity Checking DataLoader 0:  50%|#####     | 1/2 [00:01<00:01, 1.0it/s]",
		"Downloading: 100%|##########| 440M/440M [00:12<00:00, 35.1MB/s]", "model.safetensors: 100%|##########| 548/548 [00:12<00:00, 35.1MB/s]",
		"Loading checkpoint shards:  50%|#####     | 1/2 [00:03<00:03,  3.2s/it]", "Map:  45%|####5     | 450/1000 [00:01<00:01, 451.20 examples/s]",
		"Generating train split:  45%|####5     | 450/1000 [00:01<00:01, 451.20it/s]", "Fetching 3 files:  33%|###3      | 1/3 [00:01<00:02,  1.1s/it]",
		"Traceback (most recent call last):", `  File "train.py", line 88, in step`, `  File "train.py", line 12, in epoch 3`, "    for step in range(10):", "    step = 10",
		"    raise ValueError(f\"bad step {step}\")", "    assert step == 10", "    if step % 100 == 0:", "ValueError: bad label 11 at step 3", "RuntimeError: step 12 failed",
		"W0101 warning: step 12 was skipped", "train.py:30: UserWarning: iter 3 is late",
		"Test set: Average loss: 0.0501, Accuracy: 9837/10000 (98%)", "rank 1/8 is ready", "GPU 3/8: 40536MiB / 81559MiB",
		`:::MLLOG {"key": "submission_platform", "value": "1x step 3", "metadata": {"lineno": 12}}`, `:::MLLOG {"key": "epoch_start", "metadata": {"epoch_num": -3}}`, ":::MLLOG {step 3", ":::MLLOG step 3",
		"accuracy 98%|", "45it [00:12, 3.61files/s]", "usage: train.py [--step 10] [--epoch 3]",
	} {
		if p, ok := Parse([]byte(line)); ok {
			t.Errorf("%q: got %s, want no progress", line, want(p))
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"step 21/300 loss 0.12", "Epoch: [0][ 10/5005]\tLoss 6.9943e+00", " 45%|####  | 45/100 [00:12<00:15, 3.6it/s, loss=0.3]",
		"{'loss': 0.69, 'epoch': 0.1}", "1563/1563 [====] - 5s 3ms/step - loss: 1.2", "\x1b[1m313/1563\x1b[0m ━━ 3ms/step",
		"step 1,234/10,000", "45it [00:12, 3.6it/s]", "[640/60000 (1%)] loss: 1e999", "step 99999999999999999999 loss", "loss: tensor(", "step=", "epoch [", "\x1b[",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		p, ok := Parse(line)
		if !bytes.Equal(line, before) {
			t.Fatal("Parse changed its argument")
		}
		if !ok {
			if !reflect.DeepEqual(p, job.Progress{}) {
				t.Errorf("refused, yet with progress %s", want(p))
			}
			return
		}
		if p.Step < 0 || p.Total < 0 || p.Epoch < -1 {
			t.Errorf("%q: negative count: %s", line, want(p))
		}
		if p.Loss != nil && (math.IsNaN(*p.Loss) || math.IsInf(*p.Loss, 0)) {
			t.Errorf("%q: the loss is no finite number", line)
		}
		if q, again := Parse(append(bytes.Clone(line), '\n')); !again || want(q) != want(p) {
			t.Errorf("%q: with a line feed it is %s, without %s", line, want(q), want(p))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for name, line := range map[string]string{
		"progress": "step 40/1100 loss 0.8233 lr 0.099674",
		"log":      "2024-05-01 12:33:01,123 INFO server.py:88 - accepted a connection from the client at 10.0.0.1, thread pool has capacity",
		"noise":    strings.Repeat("the quick brown fox jumps over the lazy dog 12 times, pt at ep et ", 60),
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(line)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(data)
			}
		})
	}
}

//go:build !race

package judge

import "strings"

// live is the part of docs/curves.md about runs that go on. ´ stands for a backquote.
var live = strings.ReplaceAll(`
## While a job runs
gangrun judges the curves of each gang while it runs. Once a second, it looks at

- the output of the ranks 0 to 2, of the last rank, and of up to four ranks that report progress;
- what these ranks write to ´GANGRUN_PROGRESS_FD´: the loss, and all other keys with numbers ([progress.md](progress.md#heartbeats));
- files in ´checkpoint-dir´ and ´workdir´, up to five directories deep, that have changed since the run began: ´*.csv´, ´*.tsv´, ´*.jsonl´, ´*.ndjson´, ´*.wandb´, ´*tfevents*´ and ´trainer_state.json´. It follows 32 files at most. If a file was there before the run, gangrun reads only what is added to it. The files must be visible on the controller's machine.

If gangrun finds no metric in a job, nothing changes for the job. If ´curve.metric´ names a metric that the job does not have, a note says so when the job has reported other metrics, or progress, for a minute. At the end, a second note also has the names of the metrics that were found. A file system that does not answer holds up neither the gang nor its end. gangrun spends at most a fifth of a core on reading logs, and as much on other files, and keeps at most 4,096 values of each of 256 series.

gangrun shows a verdict when it first finds it, and once more when the verdict is sure: as a message, as an entry of ´curves[]´ in the report, and as a line ´curve´ in ´gangrun status´. The curve continues after a restart: an attempt that resumes from step 300 replaces what came after step 300.

What helps to judge a curve, in the job file or as flags:

´´´yaml
early-stop: {plateau: stop, reached: stop}
curve:
  metric: val_loss    # --metric; by default, a validation loss, else another validation metric, else the training loss
  goal: min           # --goal: min, max, or auto, by the name of the metric
  target: 0.25        # --target
  total: 20000        # --total-steps: of the whole run; by default, the number that the job prints
  decay-end: 15000    # --decay-end: from this step on, the learning rate no longer falls. Without it, no plateau is sure
´´´

For ´below-peers´, the run is compared with up to ten earlier runs that ended with 0: those with the same ´name´ or, without a name, with the same command. In ´curve.json´ in its directory, each run keeps the curve by which it was judged.

## Early stop
´early-stop´ says what gangrun does about each verdict. With ´off´, it does nothing. With ´advise´, it only reports the verdict. With ´stop´, it also ends the run if the verdict is sure. ´early-stop: advise´ sets all verdicts to ´advise´. With ´early-stop: off´, gangrun judges no curves. On the command line, write ´--early-stop plateau=stop,flat=off´. The default is ´stop´ for ´not-finite´ and ´diverged´, and ´advise´ for all others. gangrun refuses ´slower=stop´ and ´below-peers=stop´, because these verdicts are never sure. It refuses ´reached=stop´ and ´will-miss=stop´ if there is no target. Without ´curve.decay-end´, ´plateau´ and ´will-miss´ are never sure: gangrun warns at the start of a run with ´plateau=stop´ or ´will-miss=stop´, and when it finds such a verdict.

gangrun also warns of settings that have no effect because of others, such as ´--skip-steps´ without ´--retry-on-diverge´, or ´--target´ with ´early-stop: off´.

A stop happens in this order:

1. gangrun asks the ranks for a checkpoint, if ´before-stop´ says how. It does not ask them after ´not-finite´ and ´diverged´: the weights of a model that has diverged are worth nothing.
2. gangrun waits until there is a new checkpoint that is complete, for ´before-stop-wait´ at most. It does not wait if no rank handles the signal, and no longer than until the time limit of the run (´timeout´). A signal to gangrun, or ´gangrun stop´, does not end the wait, but then the run counts as cancelled; a second signal ends the gang at once.
3. gangrun ends the gang: SIGTERM, and SIGKILL after ´grace´.

The state of the run is then ´stopped-early´, and the signature of its cause is the verdict. The exit code is 0 only for ´reached´ and ´plateau´, and only if the run has written a good checkpoint: after the verdict became true, or in answer to the request for one. Otherwise the exit code is 1 ([exit-codes.md](exit-codes.md)).

gangrun looks at all numbers of that checkpoint, for 10 min at most. A checkpoint with NaN or +Inf does not count. If the 10 min are not enough, a checkpoint counts only if the ranks have written it in answer to the request, and it is complete. If the checkpoint that the ranks have written in answer to the request is broken, older checkpoints do not count either.

If the time limit is reached, or the batch system takes the hosts, while gangrun stops a run early, the run still counts as ´stopped-early´, because gangrun decided that first. A controller that takes the run over decides in the same way.

| verdict | category | exit code with a good checkpoint | without |
|---|---|---|---|
| ´reached´, ´plateau´ | ´stopped-early´ | 0 | 1 |
| ´flat´, ´will-miss´ | ´stopped-early´ | 1 | 1 |
| ´not-finite´, ´diverged´ | ´model-diverged´ | 1 | 1 |

## Asking for a checkpoint
´before-stop´ says how gangrun asks the ranks for a checkpoint before it ends their gang:

- With ´sigusr1´, ´sigusr2´, ´sighup´, ´sigint´ or ´sigterm´, gangrun sends this signal to the ranks that handle it. It does not send it to other ranks, because the signal would end them.
- With ´file´, gangrun makes the file that ´GANGRUN_STOP_FILE´ names, in the checkpoint directory. The program must look for this file from time to time. If the ranks save together, only rank 0 should look, and tell the others. gangrun removes the file when the gang has ended.

´´´python
stop = os.environ.get("GANGRUN_STOP_FILE")
for step in range(start, steps):
    train(step)
    asked = torch.tensor(float(bool(stop) and os.path.exists(stop)))
    dist.broadcast(asked, 0)
    if asked:
        save(step)
        break
´´´

gangrun waits until a new checkpoint is good and no file of its step has changed for 3 s. A good checkpoint has, among other things, as many files as the ones before it ([checkpoints.md](checkpoints.md#a-file-of-each-rank)). If there is no earlier checkpoint to compare it with, gangrun waits for 5 s instead of 3 s. If half of ´before-stop-wait´ is less than these 3 s or 5 s, that half is enough. If the ranks go on saving, there may always be a step whose files still change. Then it is enough that the files of one new step have not changed for that time, and that one checkpoint is good: that of this step, or that of a later step. Here, all files of the same step count as one checkpoint, also files that still have a temporary name. If all ranks have ended, gangrun waits no longer.

If the user ends a run while gangrun is already ending its gang, gangrun says that a second signal ends the ranks at once.

If a rank was asked and then ends in one of these ways, gangrun counts it as ended by gangrun:

- with code 0;
- by SIGTERM, or by the signal that asked it, or with 128 + the number of one of these signals as its code;
- with code 1, if gangrun finds no error that explains this code, and the run has a new good checkpoint.

This does not hold if the gang has already made its last step and all ranks end with code 0: then the job has succeeded. Any other end is a failure of the job, with its cause and its exit code. If a job fails while gangrun stops it early, gangrun does not start it again.

| why the gang ends | does gangrun ask the ranks |
|---|---|
| ´gangrun stop´, a signal to gangrun, the time limit, the end or the preemption of the batch job | yes; not with ´gangrun stop --now´ |
| early stop | yes; not if the model has diverged |
| a straggler, if the job's policy is to restart then | yes |
| a hang | no: the ranks do not answer. They get SIGTERM, and SIGKILL after ´grace´ |
| a lost lease, a rank that has failed | no: the GPUs belong to another job, or the ranks no longer work together |

## Going back after a divergence
´´´yaml
retry-on-diverge:
  resume: earlier     # --retry-on-diverge earlier
  skip-steps: 200     # --skip-steps
  env: {LR: "1e-4"}
  times: 1
´´´

With these settings, gangrun starts a job again if its model has diverged. The new attempt starts from the newest checkpoint that is complete, that was written before the loss rose, and that has no NaN and no +Inf. (-Inf is allowed: attention masks contain it.) A checkpoint was written before the rise if the step in its name and the time of its last change are both earlier. gangrun does not use newer checkpoints in this run again, but does not remove them. If there is no checkpoint from before the rise, the run ends.

All attempts from then on have the variables of ´env´. Attempts that start from that checkpoint also have ´GANGRUN_SKIP_STEPS=200´, for a program that leaves out this number of batches of data. ´times´ is how often a run may restart in this way. These restarts do not count against ´retries´. ´retry-on-diverge´ also applies if the job itself has found that its model has diverged, and has failed (´model-diverged´). The new attempt then starts from the newest checkpoint without NaN and +Inf.

If the last run of a job ended because its model had diverged, the next run with ´resume´ also starts from the newest checkpoint without NaN and +Inf. (Runs of the same ´name´ or, without a name, of the same command are runs of the same job.)
`, "´", "`")

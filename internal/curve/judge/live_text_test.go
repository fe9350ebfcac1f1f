//go:build !race

package judge

import "strings"

// live is the part of docs/curves.md about runs that go on. ´ stands for a backquote.
var live = strings.ReplaceAll(`
## While a job runs
gangrun judges the curves of each gang while it runs. It looks once a second at

- the output of the ranks 0 to 2, of the last rank, and of up to four ranks that report progress;
- what these ranks write to ´GANGRUN_PROGRESS_FD´: the loss, and all other keys with numbers ([progress.md](progress.md#heartbeats));
- files in ´checkpoint-dir´ and ´workdir´, up to five directories deep, that have changed since the run began: ´*.csv´, ´*.tsv´, ´*.jsonl´, ´*.ndjson´, ´*.wandb´, ´*tfevents*´ and ´trainer_state.json´. It follows 32 files at most. Of a file that was there before the run, only what is added counts. The files must be visible on the controller's machine.

A job in which no metric is found runs as if nobody had looked. If ´curve.metric´ names a metric that the job does not have, a note says so when the job has reported others, or progress, for a minute, and again at the end, with the names of those that were found. A file system that does not answer holds up neither the gang nor its end. gangrun spends at most a fifth of a core on reading logs, and as much on other files, and keeps at most 4,096 values of each of 256 series.

A verdict becomes a message, an entry of ´curves[]´ in the report and a line ´curve´ in ´gangrun status´ when it is first found, and once more when it is sure. The curve goes on over restarts: an attempt that resumes from step 300 replaces what came after step 300. Without GPUs, each rank counts as a GPU.

What helps to judge a curve, in the job file or as flags:

´´´yaml
early-stop: {plateau: stop, reached: stop}
curve:
  metric: val_loss    # --metric; by default, a validation loss, else another validation metric, else the training loss
  goal: min           # --goal: min, max, or auto: as its name tells
  target: 0.25        # --target
  total: 20000        # --total-steps: of the whole run; by default, what the job tells
  decay-end: 15000    # --decay-end: from this step on, the learning rate no longer falls. Without it, no plateau is sure
´´´

For ´below-peers´, the run is compared with up to ten earlier runs that ended with 0: those with the same ´name´ or, without a name, with the same command. Each run keeps the curve by which it was judged in ´curve.json´ in its directory.

## Early stop
´early-stop´ says what happens about each verdict: ´off´ does not even say it, ´advise´ says it, ´stop´ ends the run if the verdict is sure. ´early-stop: advise´ is for all verdicts, ´early-stop: off´ judges no curves. On the command line: ´--early-stop plateau=stop,flat=off´. By default, ´not-finite´ and ´diverged´ stop, and all others advise. Verdicts that are never sure stop nothing: ´slower=stop´ and ´below-peers=stop´ are refused, and so are ´reached=stop´ and ´will-miss=stop´ without a target. Without ´curve.decay-end´, ´plateau´ and ´will-miss´ are never sure: gangrun warns at the start of a run with ´plateau=stop´ or ´will-miss=stop´, and when it finds such a verdict.

gangrun also warns of settings that have no effect because of others, such as ´--skip-steps´ without ´--retry-on-diverge´, or ´--target´ with ´early-stop: off´.

A stop happens in this order:

1. The ranks are asked for a checkpoint, if ´before-stop´ says how. The weights of a model that has diverged (´not-finite´, ´diverged´) are worth nothing: then they are not asked.
2. gangrun waits until there is a new checkpoint that is complete, for ´before-stop-wait´ at most. It does not wait if no rank handles the signal, and no longer than until the time limit of the run (´timeout´). A signal to gangrun, or ´gangrun stop´, does not end the wait; a second one ends the gang at once.
3. The gang is ended: SIGTERM, and SIGKILL after ´grace´.

The run is ´stopped-early´, with the verdict as the signature of its cause. The exit code is 0 only for ´reached´ and ´plateau´, and only if the run has written a good checkpoint since the verdict was true, or because the ranks were asked; otherwise it is 1 ([exit-codes.md](exit-codes.md)). gangrun then looks at all numbers of that checkpoint, for 10 min at most: one with NaN or Inf does not count. If the time is not enough, a checkpoint that the ranks have written because they were asked counts if it is complete, and no other one counts. If what the ranks have written when they were asked is broken, an older checkpoint does not count either.

If the time limit is reached, or the batch system takes the hosts, while gangrun stops a run early, the run still counts as ´stopped-early´, because that was decided first. If the user ends it with a signal or ´gangrun stop´, it counts as cancelled. A controller that takes the run over decides in the same way.

| verdict | category | exit code with a good checkpoint | without |
|---|---|---|---|
| ´reached´, ´plateau´ | ´stopped-early´ | 0 | 1 |
| ´flat´, ´will-miss´ | ´stopped-early´ | 1 | 1 |
| ´not-finite´, ´diverged´ | ´model-diverged´ | 1 | 1 |

## Asking for a checkpoint
´before-stop´ is how ranks are asked for a checkpoint before gangrun ends their gang:

- ´sigusr1´, ´sigusr2´, ´sighup´, ´sigint´ and ´sigterm´ are signals. They go to the ranks that handle them, and end no other.
- ´file´ makes the file that ´GANGRUN_STOP_FILE´ names, in the checkpoint directory. Ranks look for it from time to time. If they save together, rank 0 should look, and tell the others. The file is removed when the gang has ended.

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

gangrun waits until a new checkpoint is good, which includes that it has as many files as the ones before it ([checkpoints.md](checkpoints.md#a-file-of-each-rank)), and nothing of its step has changed for 3 s. If there is no earlier checkpoint to compare it with, that is 5 s. It is never more than half of ´before-stop-wait´. If the ranks go on to save, it is enough that this holds for one new step, and that the newest checkpoint is good. What has the same step counts as one checkpoint, also what still has a temporary name. If all ranks have ended, the wait is over at once.

A user who ends a run while its gang is being ended already, for whatever reason, is told how a second signal ends the ranks at once.

A rank that ends after it was asked, with code 0, by SIGTERM or by the signal that asked it (or with 128 + the number of one of them as its code), counts as ended by gangrun, unless the gang has made the last of its steps. So has a rank with code 1 if gangrun finds no error that explains it and the run has a new good checkpoint. Any other end is a failure of the job, with its cause and its exit code. A job that fails while it is stopped early is not started again.

| end | are the ranks asked |
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

A job whose model has diverged is then started again, from the newest checkpoint that is complete, that was written before the loss rose, and whose numbers are all finite. A checkpoint was written before the rise if the step in its name and the time of its last change are both earlier. Newer checkpoints are not used again in this run, but gangrun removes none. If there is no such checkpoint, the run ends.

All attempts from then on have the variables of ´env´. Attempts that start from that checkpoint also have ´GANGRUN_SKIP_STEPS=200´, for a program that leaves out so many batches of data. ´times´ is how often a run does so. These restarts do not count against ´retries´. ´retry-on-diverge´ also applies if the job itself has failed because it has diverged (´model-diverged´); then the checkpoint is the newest one without NaN and Inf.

A later run with ´resume´ also starts from the newest checkpoint without NaN and Inf if the last run of the job (the same ´name´ or, without one, the same command) ended because its model had diverged.
`, "´", "`")

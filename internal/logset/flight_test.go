package logset

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dumps has Python write the dumps of four ranks as PyTorch does. Rank 2 has not called the seventh
// all-reduce, for which the others wait.
func dumps(t *testing.T, prefix string) {
	t.Helper()
	const code = `
import pickle, sys
def call(seq, state):
    return {"frames": [{"name": "all_reduce", "filename": "/opt/torch/distributed/distributed_c10d.py", "line": 2806},
            {"name": "average", "filename": "/home/u/train.py", "line": 120}],
        "record_id": seq, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq,
        "profiling_name": "nccl:all_reduce", "input_sizes": [[4]], "input_dtypes": ["Float"], "output_sizes": [[4]], "output_dtypes": ["Float"],
        "state": state, "retired": state == "completed", "timeout_ms": 600000, "is_p2p": False}
for rank in range(4):
    calls = [call(6, "completed")] + ([call(7, "started")] if rank != 2 else [])
    with open(sys.argv[1] + str(rank), "wb") as f:
        pickle.dump({"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
            "pg_status": {}, "entries": calls}, f, protocol=2)
`
	if out, err := exec.Command("/usr/bin/python3", "-c", code, prefix).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

const nothing = "epoch 1 loss 0.3\n"

// timeout is what a rank prints that has waited for others in vain.
const timeout = nothing + `[rank0]:[E1114 09:50:59.789610635 ProcessGroupNCCL.cpp:683] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.
`

// TestFlightRecords: dumps of PyTorch's flight recorder show for which rank the others have waited.
func TestFlightRecords(t *testing.T) {
	const words = "nccl:all_reduce 7 of default_pg (train.py:120 average): rank 2 has not called it and ranks 0-1,3 wait"
	for _, c := range []struct {
		name, prefix string
		logs         map[string]string
		pack         bool
		category     job.Category
		rank         int
	}{
		{name: "beside the logs", prefix: "comm_lib_trace_rank_", logs: map[string]string{"rank_0.log": timeout, "rank_2.log": nothing}, category: job.CollectiveTimeout, rank: 2},
		{name: "of an older PyTorch", prefix: "nccl_trace_rank_", logs: map[string]string{"all.log": timeout}, category: job.CollectiveTimeout, rank: 2},
		{name: "with a prefix of the user's", prefix: "run.fr", logs: map[string]string{"all.log": timeout}, category: job.CollectiveTimeout, rank: 2},
		{name: "packed", prefix: "nccl_trace_rank_", pack: true, logs: map[string]string{"all.log": timeout}, category: job.CollectiveTimeout, rank: 2},
		{name: "alone", prefix: "nccl_trace_rank_", category: job.CollectiveTimeout, rank: 2},
		{name: "of a job that failed for another reason", prefix: "nccl_trace_rank_", category: job.ImportError, rank: 1,
			logs: map[string]string{"rank_0.log": timeout, "rank_1.log": "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    import nothere\nModuleNotFoundError: No module named 'nothere'\n"}},
		{name: "of a job that is done", prefix: "nccl_trace_rank_", logs: map[string]string{"rank_0.log": nothing + "Training completed\n"}, rank: -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			dumps(t, filepath.Join(dir, c.prefix))
			for name, text := range c.logs {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if c.pack {
				found, _ := filepath.Glob(filepath.Join(dir, c.prefix+"*"))
				if out, err := exec.Command("gzip", found...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			logs, err := Open([]string{dir}, func(string) (string, error) { return "", errors.New("no run") })
			if err != nil {
				t.Fatal(err)
			}
			e, err := Read(t.Context(), logs, rules.Standard(), func(note string) { t.Error(note) })
			if err != nil {
				t.Fatal(err)
			}
			got := diagnose.Logs(rules.Standard(), e)
			if got.Category != c.category || got.Rank != c.rank {
				t.Errorf("got %s of rank %d, want %s of rank %d: %+v", got.Category, got.Rank, c.category, c.rank, got)
			}
			if c.category != job.CollectiveTimeout {
				return
			}
			if !strings.HasSuffix(got.Text, words) || got.Evidence[0].Text != words {
				t.Errorf("got the text %q and the evidence %+v, want %q", got.Text, got.Evidence, words)
			}
			if last := got.Evidence[1]; last.Rank != 2 || filepath.Base(strings.TrimSuffix(last.File, ".gz")) != c.prefix+"2" || !strings.Contains(last.Text, "nccl:all_reduce 6 of default_pg, which is completed") {
				t.Errorf("got %+v about rank 2", last)
			}
			if c.logs != nil && !strings.Contains(got.Evidence[len(got.Evidence)-1].Text, "Watchdog caught") {
				t.Errorf("the decisive line is not the last of the evidence: %+v", got.Evidence)
			}
		})
	}
}

// TestNoFlightRecord: a file that only begins like a dump is a log.
func TestNoFlightRecord(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"trace_0": "\x80\x02]q\x00.\n" + timeout, "trace_1": "\x80\x02", "trace_2": "\x80"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	logs, err := Open([]string{dir}, nil)
	if err != nil || len(logs) != 3 {
		t.Fatalf("got %d logs, %v", len(logs), err)
	}
	e, err := Read(t.Context(), logs, rules.Standard(), func(note string) { t.Error(note) })
	if err != nil {
		t.Fatal(err)
	}
	if got := diagnose.Logs(rules.Standard(), e); got.Category != job.CollectiveTimeout {
		t.Errorf("got %+v", got)
	}
}

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/testhosts/slurm"
)

// slurmExamples runs the unchanged batch scripts of examples/slurm.
func slurmExamples(t *testing.T, b *slurmBed) {
	for name, test := range map[string]func(b *slurmBed){
		"plain.sh": slurmPlain,
		"gpu.sh":   slurmRequeue,
		"array.sh": slurmArray,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(b.part(t))
		})
	}
}

// submitExample submits a script of examples/slurm from a copy of that directory. replace has pairs of old and new
// texts, which are replaced in the copy.
func (b *slurmBed) submitExample(name string, replace ...string) (id string) {
	b.t.Helper()
	entries, err := os.ReadDir("../../examples/slurm")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join("../../examples/slurm", entry.Name()))
		if err != nil {
			b.t.Fatal(err)
		}
		text := strings.NewReplacer(replace...).Replace(string(data))
		writeProgram(b.t, filepath.Join(b.dir, entry.Name()), []byte(text))
	}
	out, err := b.Exec(b.t.Context(), "bob", "env", "-C", b.dir, "PATH="+b.dir+":"+b.Dir("bob")+":"+os.Getenv("PATH"), "GANGRUN_HOME="+filepath.Join(b.dir, "runs"), b.mark,
		"sbatch", "--parsable", "-o", b.Output("bob", "%j"), filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func slurmPlain(b *slurmBed) {
	j, out := b.ended(b.submitExample("plain.sh"))
	if j.State() != "COMPLETED" || !strings.Contains(out, "4 ranks ended well") || !strings.Contains(out, "step 20/20") {
		b.t.Errorf("%s: %s", j.State(), out)
	}
	b.nothingLeft()
}

// slurmRequeue lets a rank die after the first checkpoint of a job in which gangrun must not restart the gang. The job
// must be requeued and resume from the checkpoint.
func slurmRequeue(b *slurmBed) {
	b.fakeGPUs()
	id := b.submitExample("gpu.sh", "ranks: 4\n", "ranks: 4\nretries: 0\n", "    time.sleep(seconds)\n", `    if step == 7 and rank == 0 and os.environ["GANGRUN_ATTEMPT"] == "1" and not resume:
        os.kill(os.getpid(), 9)
    time.sleep(seconds)
`)
	if j, err := b.Await(id, patience, func(j slurm.Job) bool { return j.State() == "PENDING" && j["Restarts"] == "1" || j.Ended() }); err != nil || j.Ended() {
		_, out := b.ended(id)
		b.t.Fatalf("%v, %v\n%s", err, j, out)
	}
	// By itself, Slurm would wait two minutes. It must wait at least a second, because a node refuses a credential
	// from the second in which the last one was revoked.
	if out, err := b.Exec(b.t.Context(), "root", "scontrol", "update", "JobId="+id, "StartTime=now+2"); err != nil {
		b.t.Fatalf("%v: %s", err, out)
	}
	j, out := b.ended(id)
	if j.State() != "COMPLETED" || !strings.Contains(out, "rank 0 begins after step 0, seed 0, GPUs GPU-h") || !strings.Contains(out, "rank 0 begins after step 5, seed 0, GPUs GPU-h") {
		b.t.Errorf("%s: %s", j.State(), out)
	}
	b.nothingLeft()
}

func slurmArray(b *slurmBed) {
	id := b.submitExample("array.sh")
	for task := 1; task <= 2; task++ {
		j, err := b.Await(fmt.Sprintf("%s_%d", id, task), patience, slurm.Job.Ended)
		if err != nil {
			b.t.Fatal(err)
		}
		out, err := os.ReadFile(b.Output("bob", j["JobId"]))
		if err != nil || j.State() != "COMPLETED" || !strings.Contains(string(out), fmt.Sprintf("rank 0 begins after step 0, seed %d,", task)) {
			b.t.Errorf("%s: %v\n%s", j.State(), err, out)
		}
		if _, err := os.Stat(filepath.Join(b.dir, "checkpoints", fmt.Sprint(task), "step-000020.json")); err != nil {
			b.t.Error(err)
		}
	}
	b.nothingLeft()
}

package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/internal/testhosts/slurm"
)

// slurmTraining is the training of the example digits on two nodes, with one rank on each.
const slurmTraining = "gangrun run -n 2 --preflight off examples/digits/job.yaml -- " + python +
	" examples/digits/train.py --epochs=2 --batch=64 --checkpoint-every=5"

// digits copies the example digits into the directory. Its ranks wait after step 12 (see pausing).
func (b *slurmBed) digits() {
	b.t.Helper()
	needPython(b.t, "numpy, torch")
	b.makeDir("examples/digits")
	for _, name := range []string{"train.py", "job.yaml", "digits.csv.gz"} {
		data, err := os.ReadFile(filepath.Join("../../examples/digits", name))
		if err == nil && name == "train.py" {
			data = pausing(b.t, data)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		writeProgram(b.t, filepath.Join(b.dir, "examples/digits", name), data)
	}
}

// rank returns the processes of one rank of digits on all nodes.
func (b *slurmBed) rank(number string) []testhosts.Process {
	b.t.Helper()
	own, err := b.Left(b.mark + "\x00")
	if err != nil {
		b.t.Fatal(err)
	}
	ranks, err := b.Left("\x00RANK=" + number + "\x00")
	if err != nil {
		b.t.Fatal(err)
	}
	return slices.DeleteFunc(ranks, func(p testhosts.Process) bool {
		same := func(o testhosts.Process) bool { return o.PID == p.PID }
		return !slices.ContainsFunc(own, same) || !slices.ContainsFunc(p.Args, func(arg string) bool { return strings.HasSuffix(arg, "train.py") }) || !strings.HasPrefix(p.Name, "python")
	})
}

// log returns what rank 0 has printed in an attempt of the newest run.
func (b *slurmBed) log(attempt string) string {
	b.t.Helper()
	logs, err := filepath.Glob(filepath.Join(b.dir, "runs/runs/*/attempts", attempt, job.LogName(0, "out")))
	if err != nil {
		b.t.Fatal(err)
	}
	if len(logs) == 0 {
		return ""
	}
	text, _ := os.ReadFile(logs[len(logs)-1])
	return string(text)
}

// slurmDigits kills a rank in the middle of the training. gangrun must start the gang again in the same job, from a
// checkpoint. The weights must be those of an undisturbed training.
func slurmDigits(b *slurmBed) {
	t := b.t
	b.digits()
	writeProgram(t, filepath.Join(b.dir, "hold.1"), nil)
	id := b.submit(slurmTraining+" --out=broken", "-N2")
	if j, err := b.Await(id, patience, func(j slurm.Job) bool { return strings.Contains(b.log("1"), "\nstep 12/") || j.Ended() }); err != nil || j.Ended() {
		_, out := b.ended(id)
		t.Fatalf("%v\n%s", err, out)
	}
	victims := b.rank("1")
	if len(victims) != 1 {
		t.Fatalf("rank 1 is %v", victims)
	}
	if err := syscall.Kill(victims[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j, out := b.ended(id)
	if j["ExitCode"] != "0:0" {
		t.Fatalf("%s: %s", j["ExitCode"], out)
	}
	if log := b.log("2"); !strings.Contains(log, "resumed from ") || strings.Contains(log, "\nstep 1/") {
		t.Errorf("attempt 2 did not resume:\n%s", log)
	}
	b.ending("a rank is killed", b.said(out, "verdict: .*"), "0")
	if err := os.RemoveAll(filepath.Join(b.dir, "examples/digits/checkpoints")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.dir, "hold.1")); err != nil {
		t.Fatal(err)
	}
	if j, out := b.ended(b.submit(slurmTraining+" --out=whole", "-N2")); j["ExitCode"] != "0:0" {
		t.Fatalf("%s: %s", j["ExitCode"], out)
	}
	broken, err1 := os.ReadFile(filepath.Join(b.dir, "broken"))
	whole, err2 := os.ReadFile(filepath.Join(b.dir, "whole"))
	if err1 != nil || err2 != nil || len(whole) == 0 || !bytes.Equal(broken, whole) {
		t.Errorf("the weights differ from those of an undisturbed run: %d and %d bytes, %v, %v", len(broken), len(whole), err1, err2)
	}
}

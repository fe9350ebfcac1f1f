package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts/slurm"
)

// waiting is the command of ranks that run until something ends them.
const waiting = ` -- bash -c 'touch ready-$RANK; while :; do sleep 0.1; done' > out.json`

// poweroff switches a node off.
func (b *slurmBed) poweroff(name string) {
	b.t.Helper()
	for _, h := range b.bed.Hosts() {
		if h.Name() == name {
			if err := h.Kill(); err != nil {
				b.t.Fatal(err)
			}
			return
		}
	}
	b.t.Fatalf("no node %q", name)
}

// requeued waits until Slurm has requeued a job, and then cancels the job. It returns the output of the job.
func (b *slurmBed) requeued(id string) string {
	b.t.Helper()
	if j, err := b.Await(id, patience, func(j slurm.Job) bool { return j.State() == "PENDING" && j["Restarts"] == "1" }); err != nil {
		b.t.Fatalf("%v\n%v", err, j)
	}
	if _, err := b.Exec(b.t.Context(), "root", "scancel", id); err != nil {
		b.t.Error(err)
	}
	_, out := b.ended(id)
	return out
}

// TestSlurmNodes checks what gangrun does when something happens to the nodes of a job. Each subtest uses its own
// nodes.
func TestSlurmNodes(t *testing.T) {
	t.Parallel()
	b := newSlurmBed(t, 13, slurm.KernelLogs())
	check := func(t *testing.T, b *slurmBed, out string, want job.Category) slurmReport {
		t.Helper()
		r := b.report(t, "out.json", out)
		if len(r.Attempts) == 0 || r.Attempts[0].Cause == nil || r.Attempts[0].Cause.Category != want {
			t.Fatalf("%+v, want %s\n%s", r, want, out)
		}
		return r
	}
	t.Run("preempted", func(t *testing.T) {
		t.Parallel()
		b := b.part(t)
		id := b.submit(`mkdir -p ck
exec gangrun run -n 2 --preflight off --mpi none --exit-code verdict --requeue 3 --checkpoint-dir ck -o json -- bash -c '[[ -z $GANGRUN_RESUME_FROM ]] || exit 0
((RANK)) || { echo {} > .new; mv .new ck/step_5.json; }; while :; do sleep 0.1; done' > out$SLURM_RESTART_COUNT.json`, "-N2", "-c1", "-w", "h1,h2")
		b.awaitFile(t, id, "ck/step_5.json")
		other := b.submit("exit", "-p", "high", "-N2", "--exclusive", "-w", "h1,h2")
		// Between its two starts, the job counts as ended for a moment.
		if _, err := b.Await(id, patience, func(j slurm.Job) bool { return j["Restarts"] == "1" && j.State() == "COMPLETED" }); err != nil {
			t.Fatal(err)
		}
		j, out := b.ended(id)
		r := check(t, b, out, job.Preempted)
		if other, _ := b.ended(other); j.State() != "COMPLETED" || j["Restarts"] != "1" || other.State() != "COMPLETED" || r.code() != "75" {
			t.Errorf("%s, %s, %s, %s\n%s", j.State(), j["Restarts"], other.State(), r.code(), out)
		}
		b.ending("a job in a partition of higher priority takes the nodes, with `--requeue`", r.said()+", and the next leg resumes", r.code())
	})
	t.Run("node off", func(t *testing.T) {
		t.Parallel()
		b := b.part(t)
		id := b.submit("exec gangrun run -n 2 --preflight off --mpi none --orphan-grace 5s --exit-code verdict -o json"+waiting, "-N2", "-c1", "-w", "h3,h4")
		b.awaitFile(t, id, "ready-0")
		b.awaitFile(t, id, "ready-1")
		b.poweroff("h4")
		out := b.requeued(id)
		r := check(t, b, out, job.HostLost)
		if r.code() != "75" {
			t.Errorf("%s\n%s", r.code(), out)
		}
		b.ending("a node is powered off", r.said(), r.code())
	})
	t.Run("node off, spare", func(t *testing.T) {
		t.Parallel()
		b := b.part(t)
		id := b.submit(`gangrun run -n 4 --preflight off --mpi none --orphan-grace 5s -o json -- bash -c 'touch ready-$RANK
[[ $GANGRUN_ATTEMPT != 1 ]] || while :; do sleep 0.1; done' > out.json`, "-N3", "--ntasks-per-node=2", "-c1", "--no-kill", "-w", "h5,h6,h7")
		b.awaitFile(t, id, "ready-0")
		b.awaitFile(t, id, "ready-3")
		b.poweroff("h6")
		j, out := b.ended(id)
		r := check(t, b, out, job.HostLost)
		if r.code() != "0" || len(r.Attempts) != 2 {
			t.Errorf("%s: %+v\n%s", j.State(), r, out)
		}
		b.ending("a node is powered off, with `--no-kill` and a spare node", r.said()+", then `"+string(r.State)+"`", r.code())
	})
	t.Run("batch host off", func(t *testing.T) {
		t.Parallel()
		b := b.part(t)
		id := b.submit(`mkdir -p ck
exec gangrun run -n 2 --preflight off --mpi none --requeue 3 --orphan-grace 5s --checkpoint-dir ck --output all -- bash -c 'touch ready-$RANK; echo "resumes from ${GANGRUN_RESUME_FROM##*/}"
[[ -z $GANGRUN_RESUME_FROM ]] || exit 0
((RANK)) || { echo {} > .new; mv .new ck/step_5.json; }; while :; do sleep 0.1; done'`, "-N2", "-c1", "--no-kill", "--requeue", "-x", "h[1-7],h[11-13]")
		b.awaitFile(t, id, "ready-1")
		b.awaitFile(t, id, "ck/step_5.json")
		j, err := b.Job(id)
		if err != nil {
			t.Fatal(err)
		}
		b.poweroff(j["BatchHost"])
		// Slurm by itself would notice half a minute later that the node is down. It would use the node again if a late
		// answer of the node arrived, but it does not use a node that is drained.
		for _, state := range []string{"DOWN", "DRAIN"} {
			if _, err := b.Exec(t.Context(), "root", "scontrol", "update", "NodeName="+j["BatchHost"], "State="+state, "Reason=off"); err != nil {
				t.Fatal(err)
			}
		}
		j, out := b.ended(id)
		if j.State() != "COMPLETED" || j["Restarts"] != "1" || !strings.Contains(out, "resumes from step_5.json") {
			t.Errorf("%s, %s\n%s", j.State(), j["Restarts"], out)
		}
		b.ending("the node of the script is powered off, with `--no-kill` and `--requeue`", "the next leg resumes", strings.TrimSuffix(j["ExitCode"], ":0"))
	})
	t.Run("kernel ECC", func(t *testing.T) {
		t.Parallel()
		b := b.part(t)
		id := b.submit(`exec gangrun run -n 2 --preflight off --mpi none --retries 0 --requeue 3 -- bash -c 'hostname > new-$RANK && mv new-$RANK host-$RANK.$SLURM_RESTART_COUNT # the test reads it at once
[[ $RANK = 1 && ! -e failed ]] || exit 0
until [[ -e fail ]]; do sleep 0.1; done; touch failed; exit 1'`, "-N2", "-c1", "-x", "h[1-10]")
		b.awaitFile(t, id, "host-1.")
		text, _ := os.ReadFile(filepath.Join(b.dir, "host-1."))
		bad := strings.TrimSpace(string(text))
		if err := b.LogKernel(bad, "NVRM: Xid (PCI:0000:3b:00): 48, pid='<unknown>', name=<unknown>, DBE (Double Bit Error) ECC Error"); err != nil {
			t.Fatal(err)
		}
		writeProgram(t, filepath.Join(b.dir, "fail"), nil)
		j, out := b.ended(id)
		var hosts []string
		for _, words := range b.words("host-*.1") {
			hosts = append(hosts, words...)
		}
		if j.State() != "COMPLETED" || len(hosts) != 2 || slices.Contains(hosts, bad) || !strings.Contains(j["ExcNodeList"], bad) {
			t.Errorf("%s, failed on %q, then on %q, without %s\n%s", j.State(), bad, hosts, j["ExcNodeList"], out)
		}
		b.ending("the kernel of a node logs an ECC error, with `--requeue`", b.said(out, "job .* is queued again.*"), strings.TrimSuffix(j["ExitCode"], ":0"))
	})
}

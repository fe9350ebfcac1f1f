package exitcode

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gangrun/gangrun/internal/job"
)

func exited(rank, code int) job.Exit {
	return job.Exit{Rank: rank, Host: "h1", Status: job.Exited, Code: code}
}

func signalled(rank, signal int) job.Exit {
	return job.Exit{Rank: rank, Host: "h1", Status: job.Signalled, Signal: signal}
}

func stopped(x job.Exit) job.Exit { x.Stopped = true; return x }

func TestExitCode(t *testing.T) {
	failed := func(c job.Category, rank int, exits ...job.Exit) Ending {
		return Ending{State: job.StateFailed, Cause: &job.Cause{Category: c, Rank: rank}, Action: c.Action(), Exits: exits}
	}
	with := func(e Ending, change func(*Ending)) Ending { change(&e); return e }
	refused := func(check string, c job.Category) Ending {
		return Ending{State: job.StatePreflightFailed, Action: c.Action(), Finding: &job.Finding{Check: check,
			Severity: job.SeverityError, Cause: &job.Cause{Category: c, Rank: -1}}}
	}
	lost := job.Exit{Rank: 1, Host: "h2", Status: job.Lost}
	unstarted := func(code int) job.Exit {
		return job.Exit{Rank: 0, Host: "h1", Status: job.Unstarted, Code: code, Text: "no such file"}
	}
	faulty := exited(0, 0)
	faulty.Fault = "it never called MPI_Finalize"
	aborted := exited(0, 0)
	aborted.Aborted = true

	tests := []struct {
		name          string
		ending        Ending
		rank, verdict int
		why           string // the reason in the mode rank
	}{
		{"success", Ending{State: job.StateSucceeded, Exits: []job.Exit{exited(0, 0)}}, 0, 0, "success"},
		{"success after a failed attempt", Ending{State: job.StateSucceeded, Cause: &job.Cause{Category: job.Killed}}, 0, 0, "success"},
		{"stopped early, saved", Ending{State: job.StateStoppedEarly, Worth: true, Saved: true}, 0, 0, "stopped early with a good checkpoint"},
		{"stopped early, nothing saved", Ending{State: job.StateStoppedEarly, Worth: true}, 1, 93, "stopped early without a good checkpoint"},
		{"stopped early in vain, saved", Ending{State: job.StateStoppedEarly, Saved: true}, 1, 93, "stopped early because it went on in vain"},
		{"SIGINT", Ending{State: job.StateCancelled, Signal: 2}, 130, 130, "128 + SIGINT"},
		{"SIGTERM", Ending{State: job.StateCancelled, Signal: 15}, 143, 143, "128 + SIGTERM"},
		{"SIGHUP", Ending{State: job.StateCancelled, Signal: 1}, 129, 129, "128 + SIGHUP"},
		{"own code", failed(job.SemanticError, 1, exited(1, 3), stopped(signalled(0, 15))), 3, 93, "the code of rank 1 on h1"},
		{"own code of a cause that may pass", failed(job.NetworkError, 0, exited(0, 7)), 7, 75, "the code of rank 0 on h1"},
		{"not the first code but the root cause's", failed(job.GPUOOM, 2, exited(0, 9), exited(2, 4)), 4, 93, "the code of rank 2 on h1"},
		{"gangrun ended the root cause: the first that failed by itself", failed(job.SemanticError, 0, exited(1, 4), exited(2, 5), stopped(signalled(0, 15))), 4, 93, "the code of rank 1 on h1"},
		{"own signal", failed(job.Killed, 0, signalled(0, 9)), 137, 93, "rank 0 on h1: 128 + SIGKILL"},
		{"once, before the budget allowed it", with(failed(job.Killed, 0, signalled(0, 9)), func(e *Ending) { e.Budget = true }), 137, 75, "rank 0 on h1: 128 + SIGKILL"},
		{"no rank blamed: the first that failed", failed(job.Unknown, -1, exited(2, 0), stopped(exited(1, 5)), exited(0, 6)), 6, 93, "the code of rank 0 on h1"},
		{"no cause known", Ending{State: job.StateFailed, Cause: &job.Cause{Rank: -1}, Action: job.RetryOnce, Exits: []job.Exit{exited(0, 6)}}, 6, 93, "the code of rank 0 on h1"},
		{"zero that is a failure", failed(job.MPIError, 0, faulty), 1, 93, "rank 0 exited with code 0, which is a failure here"},
		{"zero that left the others behind", failed(job.CollectiveTimeout, 0, exited(0, 0), stopped(signalled(1, 9))), 1, 75, "rank 0 exited with code 0, which is a failure here"},
		{"MPI_Abort(256)", failed(job.MPIError, 0, aborted), 255, 93, "rank 0 called MPI_Abort with a code that is 0 modulo 256"},
		{"program missing", failed(job.LaunchError, 0, unstarted(127)), 127, 93, "rank 0 on h1 could not be started"},
		{"program not executable", failed(job.PermissionError, 0, unstarted(126)), 126, 93, "rank 0 on h1 could not be started"},
		{"not started for another reason", failed(job.LaunchError, 0, unstarted(0)), 70, 93, "the ranks could not be started"},
		{"lost host", failed(job.HostLost, 1, lost, exited(0, 1)), 75, 75, "the cause may pass"},
		{"lost host, no rank named", with(failed(job.HostLost, -1, exited(0, 1), lost), func(e *Ending) { e.Cause.Host = "h2" }), 75, 75, "the cause may pass"},
		{"hang: gangrun ended the rank", failed(job.Hang, 0, stopped(signalled(0, 9))), 75, 75, "the cause may pass"},
		{"network", failed(job.NetworkError, -1), 75, 75, "the cause may pass"},
		{"storage", failed(job.StorageError, -1), 75, 75, "the cause may pass"},
		{"budget spent", with(failed(job.Unknown, -1), func(e *Ending) { e.Budget = true }), 75, 75, "the cause may pass"},
		{"a never-cause without a code", failed(job.DiskFull, -1), 1, 93, "the run failed"},
		{"lost lease", with(failed(job.LaunchError, -1), func(e *Ending) { e.Action = job.RetryAgain }), 75, 75, "the cause may pass"},
		{"time limit", with(failed(job.TimeLimit, -1, stopped(signalled(0, 15))), func(e *Ending) { e.TimeLimit = true }), 124, 93, "time limit"},
		{"time limit before the gang", Ending{State: job.StateFailed, TimeLimit: true}, 124, 93, "time limit"},
		{"time limit while waiting to restart", with(failed(job.Killed, 0, signalled(0, 9)), func(e *Ending) { e.TimeLimit = true }), 124, 93, "time limit"},
		{"time limit, a resuming job saved", Ending{State: job.StateFailed, TimeLimit: true, Saved: true, Resume: true}, 124, 75, "time limit"},
		{"time limit, saved but it would start afresh", Ending{State: job.StateFailed, TimeLimit: true, Saved: true}, 124, 93, "time limit"},
		{"preempted", with(failed(job.Preempted, -1, stopped(signalled(0, 15))), func(e *Ending) { e.HostsTaken = true }), 75, 75, "the batch system took the job's hosts away"},
		{"preflight: failed before", refusedAgain(), 65, 93, "the job has failed before and has not changed"},
		{"preflight: inputs", refused("inputs", job.IncorrectInputs), 65, 93, "the preflight found a fault in the job's inputs"},
		{"preflight: disk", refused("checkpoint-dir", job.DiskFull), 65, 93, "the preflight found a fault in the job's inputs"},
		{"preflight: output", refused("trial", job.OutputError), 65, 93, "the preflight found a fault in the job's inputs"},
		{"preflight: host lost", refused("trial", job.HostLost), 75, 75, "a host was lost or not reached in the preflight"},
		{"preflight: storage", refused("inputs", job.StorageError), 65, 75, "the preflight found a fault in the job's inputs"},
		{"preflight: checkpoint", refused("trial", job.CheckpointError), 65, 75, "the preflight found a fault in the job's inputs"},
		{"preflight: unreadable input", refused("inputs", job.PermissionError), 65, 93, "the preflight found a fault in the job's inputs"},
		{"preflight: unwritable checkpoint dir", refused("checkpoint-dir", job.PermissionError), 65, 93, "the preflight found a fault in the job's inputs"},
		{"preflight: the trial's checkpoint dir", refused("trial-checkpoint-dir", job.PermissionError), 65, 93, "the preflight found a fault in the job's inputs"},
		{"preflight: program not executable", refused("program", job.PermissionError), 78, 93, "the preflight found a fault in the job's program or environment"},
		{"preflight: syntax", refused("script", job.SyntaxError), 78, 93, "the preflight found a fault in the job's program or environment"},
		{"preflight: a check on inputs without a cause", Ending{State: job.StatePreflightFailed, Finding: &job.Finding{Check: "workdir"}}, 65, 93, "the preflight found a fault in the job's inputs"},
		{"preflight: no cause", Ending{State: job.StatePreflightFailed, Finding: &job.Finding{Check: "program"}}, 78, 93, "the preflight found a fault in the job's program or environment"},
		{"no placement", Ending{State: job.StateNoPlacement}, 69, 75, "no place for the gang"},
		{"no placement, ever", Ending{State: job.StateNoPlacement, Never: true}, 69, 93, "no place for the gang"},
		{"full file system", Ending{State: job.StateFailed, Storage: true}, 75, 75, "a file system was full or did not answer"},
		{"full file system beside a rank's code", with(failed(job.Killed, 0, signalled(0, 9)), func(e *Ending) { e.Storage = true }), 75, 75, "a file system was full or did not answer"},
		{"gangrun's own fault", Ending{State: job.StateFailed, Internal: true}, 70, 93, "gangrun itself failed"},
		{"gangrun's own fault beside a rank's code", with(failed(job.Killed, 0, signalled(0, 9)), func(e *Ending) { e.Internal = true }), 70, 93, "gangrun itself failed"},
	}
	used := map[int]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, why := Of(tt.ending, job.ExitRank)
			if code != tt.rank || why != tt.why {
				t.Errorf("got %d (%s), want %d (%s)", code, why, tt.rank, tt.why)
			}
			if code, _ := Of(tt.ending, job.ExitVerdict); code != tt.verdict {
				t.Errorf("verdict: got %d, want %d", code, tt.verdict)
			}
		})
		for _, mode := range job.ExitModes() {
			used[matching(tt.ending, mode)] = true
		}
	}
	for i, rule := range exitRules {
		if rule.match != nil && !used[i] {
			t.Errorf("no test reaches %q: %s", rule.codes, rule.doc)
		}
	}
}

// matching returns the index of the rule that applies.
func matching(e Ending, mode job.ExitMode) int {
	for i, rule := range exitRules {
		if rule.match == nil || rule.mode != "" && rule.mode != mode {
			continue
		}
		if _, _, ok := rule.match(e); ok {
			return i
		}
	}
	return -1
}

// TestFailureIsNeverZero: no failed run has the exit code 0, or a code that a shell does not show.
func TestFailureIsNeverZero(t *testing.T) {
	states := []job.State{job.StateFailed, job.StatePreflightFailed, job.StateNoPlacement, job.StateStoppedEarly}
	rapid.Check(t, func(t *rapid.T) {
		e := Ending{
			State:     rapid.SampledFrom(states).Draw(t, "state"),
			Budget:    rapid.Bool().Draw(t, "budget"),
			TimeLimit: rapid.Bool().Draw(t, "time limit"),
			Internal:  rapid.Bool().Draw(t, "internal"),
			Resume:    rapid.Bool().Draw(t, "resume"),
		}
		if rapid.Bool().Draw(t, "cause") {
			e.Cause = &job.Cause{Rank: rapid.IntRange(-1, 2).Draw(t, "rank"),
				Category: rapid.SampledFrom(append(job.Categories(), "")).Draw(t, "category")}
			e.Action = rapid.SampledFrom(job.Actions()).Draw(t, "action")
		}
		for rank := range rapid.IntRange(0, 3).Draw(t, "ranks") {
			x := job.Exit{Rank: rank, Stopped: rapid.Bool().Draw(t, "stopped"), Aborted: rapid.Bool().Draw(t, "aborted"),
				Status: rapid.SampledFrom([]job.ExitStatus{job.Exited, job.Signalled, job.Lost, job.Unstarted}).Draw(t, "status")}
			switch x.Status {
			case job.Exited:
				x.Code = rapid.IntRange(0, 255).Draw(t, "code")
			case job.Signalled:
				x.Signal = rapid.IntRange(1, 64).Draw(t, "signal")
			}
			e.Exits = append(e.Exits, x)
		}
		for _, mode := range job.ExitModes() {
			if code, why := Of(e, mode); code < 1 || code > 255 || why == "" {
				t.Fatalf("%s: code %d (%s)", mode, code, why)
			}
		}
	})
}

// TestOwnEndings checks the exit codes of each of ownEndings, which it finds by the first words
// of its line in docs/exit-codes.md.
func TestOwnEndings(t *testing.T) {
	want := []struct {
		begins        string
		rank, verdict int
	}{
		{"gangrun cannot make a directory", 70, 93},
		{"A file system that gangrun itself needs is full", 75, 75},
		{"The gang would not fit even if every slot", 69, 93},
		{"The gang does not fit because some GPUs are faulty", 69, 75},
		{"The GPUs that the gang needs are in use", 69, 75},
		{"The gang needs hosts that gangrun cannot reach", 69, 75},
		{"The same, but the reason is the login", 69, 93},
		{"gangrun finds no network", 69, 93},
		{"`gangrun preflight`: a host is not reached", 75, 75},
		{"`gangrun preflight`: the login on a host fails", 75, 93},
		{"The preflight finds that a file system fails", 65, 75},
		{"The preflight finds an error of the network", 78, 75},
		{"The preflight, or its trial, finds an error in the job's inputs", 65, 93},
		{"The preflight, or its trial, finds an error in the job's program", 78, 93},
		{"The same job has failed before", 65, 93},
		{"The preflight finds an error whose cause is not known", 78, 93},
		{"No place is found for another attempt", 75, 75},
		{"The gang loses the lease of its GPUs", 75, 75},
		{"The time limit is reached, and the next run would start from the beginning", 124, 93},
		{"The time limit is reached, and the next run resumes", 124, 75},
		{"The batch system preempts the job", 75, 75},
		{"gangrun ends the gang early because the loss is NaN", 1, 93},
		{"gangrun ends the gang early because the run has reached its target or no longer improves, and the run has written no", 1, 93},
		{"gangrun ends the gang early because the run has reached its target or no longer improves, and the run has written a", 0, 0},
		{"The run is cancelled", 143, 143},
	}
	if len(want) != len(ownEndings) {
		t.Errorf("%d endings are decided, but there are %d", len(want), len(ownEndings))
	}
	for i, own := range ownEndings[:min(len(want), len(ownEndings))] {
		rank, _ := Of(own.ending, job.ExitRank)
		verdict, _ := Of(own.ending, job.ExitVerdict)
		if w := want[i]; !strings.HasPrefix(own.doc, w.begins) || rank != w.rank || verdict != w.verdict {
			t.Errorf("%q gives %d and %d, want %q, %d and %d", own.doc, rank, verdict, w.begins, w.rank, w.verdict)
		}
	}
}

// TestDocumentExitCodes compares docs/exit-codes.md with the table. With UPDATE=1, it writes the page.
func TestDocumentExitCodes(t *testing.T) {
	const path = "../../docs/exit-codes.md"
	var got bytes.Buffer
	if err := Document(&got); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s is not what the table of exit codes says; UPDATE=1 go test rewrites it", path)
	}
}

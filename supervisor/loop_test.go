package supervisor

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

const begin = "created preflight waiting placed launching attempt "

func TestRun(t *testing.T) {
	type want struct {
		story, reason string
		state         job.State
		code          int
		err           bool
		resumes       []string // the checkpoints of the attempts after the first
		nots          []job.Excluded
		took          time.Duration
		notes         string // contained
	}
	killed := dies(signalled(1, 9), job.Killed, 5)
	network := dies(exited(0, 7), job.NetworkError, -1)
	lost := dies(job.Exit{Rank: 1, Status: job.Lost}, job.HostLost, -1)
	hosts := func(names ...string) job.Excluded { return job.Excluded{Hosts: names} }
	devices := func(names ...string) job.Excluded { return job.Excluded{Devices: names} }
	refused := func(check string, c job.Category) []job.Finding {
		return []job.Finding{
			{Check: "clock", Severity: job.SeverityWarning, Text: "clocks differ"},
			{Check: check, Severity: job.SeverityError, Host: "h1", Text: "it is not there", Hint: "put it there", Cause: &job.Cause{Category: c}},
			{Check: "later", Severity: job.SeverityError, Text: "another"},
		}
	}
	attempt := "running stopping outcome "
	retry := "restart waiting placed launching attempt "

	tests := []struct {
		name  string
		gangs []gang
		set   func(*world)
		want  want
	}{
		{"success at once", []gang{works()}, nil, want{
			story: begin + "running outcome succeed succeeded", state: job.StateSucceeded, reason: "every rank ended well",
			took: 16 * time.Second}},
		{"no preflight", []gang{works()}, func(w *world) { w.spec.Preflight = job.PreflightOff }, want{
			story: "created waiting placed launching attempt running outcome succeed succeeded", state: job.StateSucceeded,
			reason: "every rank ended well", took: 14 * time.Second}},
		{"killed, resumed, success", []gang{killed.saving(5), works()}, func(w *world) { w.spec.CheckpointDir = "/ckpt" }, want{
			story: begin + attempt + "killed checkpoint " + retry + "running outcome succeed succeeded",
			state: job.StateSucceeded, reason: "every rank ended well", resumes: []string{"/ckpt/step-5"},
			took: 2*time.Second + 2*14*time.Second + time.Second}},
		{"never", []gang{dies(exited(0, 1), job.ImportError, -1)}, nil, want{
			story: begin + attempt + "import-error stop failed", state: job.StateFailed, code: 1,
			reason: "a retry cannot fix import-error"}},
		{"once, twice the same", []gang{dies(signalled(1, 9), job.Killed, -1), dies(signalled(1, 9), job.Killed, -1)}, nil, want{
			story: begin + attempt + "killed " + retry + attempt + "killed stop failed", state: job.StateFailed, code: 137,
			reason: "the same killed again without progress: a retry cannot fix it"}},
		{"the same at the same step", []gang{dies(exited(0, 7), job.NetworkError, 5), dies(exited(0, 7), job.NetworkError, 5)}, func(w *world) { w.spec.ExitCode = job.ExitVerdict }, want{
			story: begin + attempt + "network-error " + retry + attempt + "network-error stop failed", state: job.StateFailed, code: 93,
			reason: "the same network-error again at step 5: a retry cannot fix it"}},
		{"steps are progress", []gang{killed, dies(signalled(1, 9), job.Killed, 6), works()}, nil, want{
			story: begin + attempt + "killed " + retry + attempt + "killed " + retry + "running outcome succeed succeeded",
			state: job.StateSucceeded, reason: "every rank ended well"}},
		{"checkpoints are progress", []gang{killed.saving(5), killed.saving(6), works()}, func(w *world) { w.spec.CheckpointDir = "/ckpt" }, want{
			story: begin + attempt + "killed checkpoint " + retry + attempt + "killed checkpoint " + retry + "running outcome succeed succeeded",
			state: job.StateSucceeded, reason: "every rank ended well", resumes: []string{"/ckpt/step-5", "/ckpt/step-6"}}},
		{"a checkpoint lost and saved again is no progress", []gang{killed.saving(5), dies(signalled(1, 9), job.Killed, 6).saving(4), killed.saving(5)},
			func(w *world) {
				w.spec.CheckpointDir = "/ckpt"
				w.spec.Policy = map[job.Category]job.Action{job.Killed: job.RetryAgain}
				w.spec.Retries = 2
			}, want{
				story: begin + attempt + "killed checkpoint " + retry + attempt + "killed " + retry + attempt + "killed stop failed",
				state: job.StateFailed, code: 137, reason: "2 restarts without progress are spent", resumes: []string{"/ckpt/step-5", "/ckpt/step-4"}}},
		{"budget spent", []gang{network, network, network}, func(w *world) { w.spec.Retries = 2 }, want{
			story: begin + attempt + "network-error " + retry + attempt + "network-error " + retry + attempt + "network-error stop failed",
			state: job.StateFailed, code: 7, reason: "2 restarts without progress are spent",
			took: 2*time.Second + 3*14*time.Second + 3*time.Second}},
		{"budget spent, told to a batch system", []gang{network}, func(w *world) { w.spec.Retries, w.spec.ExitCode = 0, job.ExitVerdict }, want{
			story: begin + attempt + "network-error stop failed", state: job.StateFailed, code: 75, reason: "no restarts are allowed (retries is 0)"}},
		{"preempted is free", []gang{dies(signalled(0, 10), job.Preempted, -1), dies(signalled(0, 10), job.Preempted, -1), works()}, func(w *world) { w.spec.Retries = 0 }, want{
			story: begin + attempt + "preempted " + retry + attempt + "preempted " + retry + "running outcome succeed succeeded",
			state: job.StateSucceeded, reason: "every rank ended well"}},
		{"host lost, elsewhere", []gang{lost, works()}, func(w *world) { w.supervisor.Elsewhere = true }, want{
			story: begin + attempt + "host-lost " + retry + "running outcome succeed succeeded", state: job.StateSucceeded,
			reason: "every rank ended well", nots: []job.Excluded{{}, hosts("h2")}}},
		{"host lost, nowhere else", []gang{lost, works()}, nil, want{
			story: begin + attempt + "host-lost " + retry + "running outcome succeed succeeded", state: job.StateSucceeded,
			reason: "every rank ended well", nots: []job.Excluded{{}, {}}}},
		{"bad GPUs add up", []gang{dies(exited(0, 1), job.CUDAInit, -1), dies(exited(1, 1), job.CUDAInit, -1), works()}, nil, want{
			story: begin + attempt + "cuda-init " + retry + attempt + "cuda-init " + retry + "running outcome succeed succeeded",
			state: job.StateSucceeded, reason: "every rank ended well", nots: []job.Excluded{{}, devices("GPU-0"), devices("GPU-0", "GPU-1")}}},
		{"bad GPUs without UUIDs are those of their hosts", []gang{dies(exited(0, 1), job.CUDAInit, -1), dies(exited(1, 1), job.CUDAInit, -1), works()}, func(w *world) { w.placer.bare = true }, want{
			story: begin + attempt + "cuda-init " + retry + attempt + "cuda-init " + retry + "running outcome succeed succeeded",
			state: job.StateSucceeded, reason: "every rank ended well", nots: []job.Excluded{{}, devices("h1/GPU0"), devices("h1/GPU0", "h2/GPU0")}}},
		{"a GPU that there is no other than", []gang{dies(exited(0, 1), job.CUDAInit, -1), works()}, func(w *world) { w.placer.full = true }, want{
			story: begin + attempt + "cuda-init " + retry + "running outcome succeed succeeded", state: job.StateSucceeded,
			reason: "every rank ended well", nots: []job.Excluded{{}, devices("GPU-0"), {}},
			notes: "there is no place without GPU-0; placing the gang on it again"}},
		{"what was given up wishing for stays so", []gang{dies(exited(0, 1), job.CUDAInit, -1), dies(exited(1, 1), job.CUDAInit, -1), works()}, func(w *world) { w.placer.full = true }, want{
			story: begin + attempt + "cuda-init " + retry + attempt + "cuda-init " + retry + "running outcome succeed succeeded",
			state: job.StateSucceeded, reason: "every rank ended well", nots: []job.Excluded{{}, devices("GPU-0"), {}, devices("GPU-1"), {}}}},
		{"unreaped ranks bar their hosts", []gang{{life: time.Second, steps: -1, left: []job.Unreaped{{Rank: 1, Host: "h2"}}, exits: network.exits}, works()}, nil, want{
			story: begin + attempt + "network-error " + retry + "running outcome succeed succeeded", state: job.StateSucceeded,
			reason: "every rank ended well", nots: []job.Excluded{{}, hosts("h2")}}},
		{"unreaped ranks, no other host", []gang{{life: time.Second, steps: -1, left: []job.Unreaped{{Rank: 1, Host: "h2"}}, exits: network.exits}}, func(w *world) { w.placer.full = true }, want{
			story: begin + attempt + "network-error restart waiting failed", state: job.StateFailed, code: 7,
			reason: "no place for another attempt: no other host; ranks may still be running on h2", nots: []job.Excluded{{}, hosts("h2")}}},
		{"no place to try again, told to a batch system", []gang{{life: time.Second, steps: -1, left: []job.Unreaped{{Rank: 1, Host: "h2"}}, exits: killed.exits}},
			func(w *world) { w.placer.full, w.spec.ExitCode = true, job.ExitVerdict }, want{
				story: begin + attempt + "killed restart waiting failed", state: job.StateFailed, code: 75,
				reason: "no place for another attempt: no other host; ranks may still be running on h2"}},
		{"preflight: inputs", nil, func(w *world) { w.checker.findings = refused("inputs", job.IncorrectInputs) }, want{
			story: "created preflight finding finding finding preflight-failed", state: job.StatePreflightFailed, code: 65, reason: "it is not there"}},
		{"preflight: findings told as they come", nil, func(w *world) { w.checker.findings, w.checker.live = refused("inputs", job.IncorrectInputs), true }, want{
			story: "created preflight finding finding finding preflight-failed", state: job.StatePreflightFailed, code: 65, reason: "it is not there"}},
		{"preflight: program", nil, func(w *world) { w.checker.findings = refused("script", job.SyntaxError) }, want{
			story: "created preflight finding finding finding preflight-failed", state: job.StatePreflightFailed, code: 78, reason: "it is not there"}},
		{"preflight: storage, told to a batch system", nil, func(w *world) {
			w.checker.findings, w.spec.ExitCode = refused("inputs", job.StorageError), job.ExitVerdict
		}, want{
			story: "created preflight finding finding finding preflight-failed", state: job.StatePreflightFailed, code: 75, reason: "it is not there"}},
		{"preflight: warnings pass", []gang{works()}, func(w *world) { w.checker.findings = refused("", "")[:1] }, want{
			story: "created preflight finding waiting placed launching attempt running outcome succeed succeeded", state: job.StateSucceeded,
			reason: "every rank ended well"}},
		{"preflight fails itself", nil, func(w *world) { w.checker.err = errors.New("no agent") }, want{
			story: "created preflight failed", state: job.StateFailed, code: 70, reason: "preflight: no agent", err: true}},
		{"no placement", nil, func(w *world) {
			w.placer.err = fmt.Errorf("wrapped: %w", NoPlacement{Text: "2 GPUs needed, 1 there", Hint: "ask for less"})
		}, want{
			story: "created preflight waiting no-placement", state: job.StateNoPlacement, code: 69, reason: "2 GPUs needed, 1 there"}},
		{"placement fails itself", nil, func(w *world) { w.placer.err = errors.New("no locks") }, want{
			story: "created preflight waiting failed", state: job.StateFailed, code: 70, reason: "placement: no locks", err: true}},
		{"launcher fails itself", []gang{{err: errors.New("pipe broke")}}, nil, want{
			story: begin + "running outcome failed", state: job.StateFailed, code: 70, reason: "launch: pipe broke", err: true}},
		{"launcher fails itself after a failed attempt", []gang{network, {err: errors.New("pipe broke")}}, nil, want{
			story: begin + attempt + "network-error " + retry + "running outcome failed", state: job.StateFailed, code: 70, reason: "launch: pipe broke", err: true}},
		{"no log directory", nil, func(w *world) { w.logDir = func(int) (string, error) { return "", errors.New("read-only") } }, want{
			story: "created preflight waiting failed", state: job.StateFailed, code: 70, reason: "log directory: read-only", err: true}},
		{"lease lost, then success", []gang{{launch: time.Second, life: time.Hour}, works()}, func(w *world) { w.placer.lose = 5 * time.Second }, want{
			story: begin + attempt + "launch-error " + retry + "running outcome succeed succeeded", state: job.StateSucceeded, reason: "every rank ended well",
			took: 2*time.Second + 3*time.Second + 5*time.Second + 5*time.Second + time.Second + 14*time.Second}},
		{"lease lost, no restarts", []gang{{life: time.Hour, endErr: LeaseLost{errors.New("x")}}}, func(w *world) { w.placer.lose, w.spec.Retries = 5*time.Second, 0 }, want{
			story: begin + attempt + "launch-error stop failed", state: job.StateFailed, code: 75, reason: "no restarts are allowed (retries is 0)"}},
		{"the journal fails", []gang{killed, works()}, func(w *world) { w.emitErr = errors.New("no space left on device") }, want{
			story: begin + attempt + "killed " + retry + "running outcome succeed succeeded", state: job.StateSucceeded, reason: "every rank ended well",
			notes: "the journal cannot be written: no space left on device; the run goes on, but what is journalled of it will have gaps"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.gangs...)
			if tt.set != nil {
				tt.set(w)
			}
			w.run(t)
			if got := w.story(); got != tt.want.story {
				t.Errorf("story\n got %s\nwant %s", got, tt.want.story)
			}
			r := w.report
			if r.State != tt.want.state || r.ExitCode == nil || *r.ExitCode != tt.want.code || r.Reason != tt.want.reason {
				t.Errorf("got %s, %d, %q, want %s, %d, %q", r.State, *r.ExitCode, r.Reason, tt.want.state, tt.want.code, tt.want.reason)
			}
			if (w.err != nil) != tt.want.err {
				t.Errorf("error %v", w.err)
			}
			if len(w.launcher.runs) != len(tt.gangs) {
				t.Errorf("%d attempts, want %d", len(w.launcher.runs), len(tt.gangs))
			}
			for i, from := range tt.want.resumes {
				if got := w.launcher.runs[i+1].ResumeFrom; got != from || r.Attempts[i+1].ResumeFrom != from {
					t.Errorf("attempt %d resumes from %q (report: %q), want %q", i+2, got, r.Attempts[i+1].ResumeFrom, from)
				}
			}
			if tt.want.nots != nil && !reflect.DeepEqual(w.placer.nots, tt.want.nots) {
				t.Errorf("placed without %+v, want %+v", w.placer.nots, tt.want.nots)
			}
			if tt.want.took != 0 && w.took != tt.want.took {
				t.Errorf("took %s, want %s", w.took, tt.want.took)
			}
			if got := w.notes(); !strings.Contains(got, tt.want.notes) || strings.Count(got, "journal") > 2 {
				t.Errorf("notes %q, want %q", got, tt.want.notes)
			}
			if folded := runreport.Fold(w.events); !reflect.DeepEqual(folded, r) {
				t.Errorf("the folded journal is not the report:\n%+v\n%+v", folded, r)
			}
		})
	}
}

func TestResume(t *testing.T) {
	old := &job.Checkpoint{Path: "/ckpt/old", Step: 50, Time: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)}
	killed := dies(signalled(1, 9), job.Killed, -1)
	tests := []struct {
		name  string
		gangs []gang
		set   func(*world)
		from  []string
		notes string
	}{
		{"asked for", []gang{works()}, func(w *world) { w.spec.Resume, w.checkpoints.newest = true, old }, []string{"/ckpt/old"}, ""},
		{"asked for, and none there", []gang{works()}, func(w *world) { w.spec.Resume = true }, []string{""},
			`there is no good checkpoint in "/ckpt": the job starts from its beginning`},
		{"not asked for: another job's checkpoint is left alone", []gang{killed, works()}, func(w *world) { w.checkpoints.newest = old }, []string{"", ""}, ""},
		{"not asked for: its own is taken", []gang{killed.saving(5), works()}, func(w *world) { w.checkpoints.newest = old }, []string{"", "/ckpt/step-5"}, ""},
		{"what is not good is told", []gang{works()}, func(w *world) {
			w.spec.Resume, w.checkpoints.newest, w.checkpoints.notes = true, old, []string{"skipped ckpt-40.pt: truncated"}
		}, []string{"/ckpt/old"}, "checkpoints: skipped ckpt-40.pt: truncated"},
		{"nobody can look", []gang{works()}, func(w *world) { w.spec.Resume, w.checkpoints.err = true, errors.New("stale file handle") }, []string{""},
			`the checkpoints in "/ckpt" could not be looked at: stale file handle`},
		{"nobody could look at first: what is older than the run is another's", []gang{killed, works()}, func(w *world) {
			w.checkpoints.err = errors.New("stale file handle")
			place := w.supervisor.Placer
			w.supervisor.Placer = placerFunc(func() { w.checkpoints.err, w.checkpoints.newest = nil, old }, place)
		}, []string{"", ""}, "stale file handle"},
		{"nobody can look again: the last good one is taken", []gang{killed.saving(5), killed.saving(6), works()}, func(w *world) {
			w.spec.Policy = map[job.Category]job.Action{job.Killed: job.RetryAgain}
			calls := 0
			w.supervisor.Placer = placerFunc(func() {
				if calls++; calls == 2 {
					w.checkpoints.err = errors.New("stale file handle")
				}
			}, w.supervisor.Placer)
		}, []string{"", "/ckpt/step-5", "/ckpt/step-5"}, "stale file handle"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.gangs...)
			w.spec.CheckpointDir = "/ckpt"
			tt.set(w)
			w.run(t)
			var from []string
			for _, a := range w.launcher.runs {
				from = append(from, a.ResumeFrom)
			}
			if w.report.State != job.StateSucceeded || !reflect.DeepEqual(from, tt.from) {
				t.Errorf("%s, resumed from %q, want %q", w.report.State, from, tt.from)
			}
			if got := w.notes(); !strings.Contains(got, tt.notes) || tt.notes == "" && got != "" {
				t.Errorf("notes %q, want %q", got, tt.notes)
			}
		})
	}
}

func TestPreflight(t *testing.T) {
	wrong := job.Finding{Check: "inputs", Severity: job.SeverityError, Text: "it is not there", Cause: &job.Cause{Category: job.IncorrectInputs}}
	tests := []struct {
		name     string
		findings []job.Finding
		err      error
		story    string
		code     int
	}{
		{"nothing wrong", nil, nil, "created preflight succeeded", 0},
		{"something wrong", []job.Finding{wrong}, nil, "created preflight finding preflight-failed", 65},
		{"it fails itself", nil, errors.New("no agent"), "created preflight failed", 70},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.checker.findings, w.checker.err, w.checker.wait = tt.findings, tt.err, 0
			r, err := w.supervisor.Preflight(t.Context(), Run{ID: "r1"}, w.spec)
			if w.story() != tt.story || *r.ExitCode != tt.code || (err != nil) != (tt.err != nil) || len(r.Attempts) != 0 {
				t.Errorf("%s, %d, %v", w.story(), *r.ExitCode, err)
			}
			if len(tt.findings) > 0 && r.Cause().Category != job.IncorrectInputs {
				t.Errorf("cause %+v", r.Cause())
			}
		})
	}
}

// TestLastLookIsBounded: a search on slow storage does not delay the end of a cancelled run.
func TestLastLookIsBounded(t *testing.T) {
	w := newWorld(t, gang{life: time.Hour})
	w.spec.CheckpointDir, w.checkpoints.wait, w.cancelAfter = "/ckpt", time.Hour, 2*time.Hour
	w.run(t)
	// The first look takes its hour, then the gang its grace of 5 s, the last look lastLook.
	if want := 2*time.Hour + 5*time.Second + lastLook; w.took > want || w.report.State != job.StateCancelled {
		t.Errorf("took %s, %s, want at most %s", w.took, w.report.State, want)
	}
}

func TestAttemptAndEvidence(t *testing.T) {
	w := newWorld(t, dies(exited(0, 7), job.NetworkError, 3), works())
	w.spec.Env, w.spec.Secret = map[string]string{"TOKEN": "s3cret"}, []string{"TOKEN"}
	w.spec.CheckpointDir, w.spec.Output, w.spec.Stdin, w.spec.TTY = "/ckpt", job.OutputAll, job.StdinAll, job.TTYOn
	w.spec.Progress = "(?P<step>[0-9]+)"
	w.run(t)
	want := job.Attempt{Run: "r1", Number: 2, Command: w.spec.Command, Workdir: "/work", Placement: place(2), Env: w.spec.Env,
		CheckpointDir: "/ckpt", LogDir: "/logs/2", Progress: "(?P<step>[0-9]+)", Grace: job.DefaultGrace, Stdin: job.StdinAll, TTY: job.TTYOn, Show: job.OutputAll,
		Retries: job.DefaultRetries, Pulses: true, Saves: true, MPI: job.MPIAuto, EnvCompat: job.EnvCompatNone, InitTimeout: job.DefaultInitTimeout, GPUVisibility: job.GPUVisibilityGang}
	if got := w.launcher.runs[1]; !reflect.DeepEqual(got, want) {
		t.Errorf("attempt\n got %+v\nwant %+v", got, want)
	}
	if e := w.evidence[0]; e.Ranks != 2 || e.Trial || e.Ended != job.EndedNot || !reflect.DeepEqual(e.Command, w.spec.Command) || len(e.Outcome.Exits) != 2 {
		t.Errorf("evidence %+v", e)
	}
	created := w.events[0]
	if created.Run != "r1" || created.Controller.PID != 7 || created.Spec.Env["TOKEN"] != job.Hidden {
		t.Errorf("created %+v", created)
	}
	for _, e := range w.events {
		if gang := e.Kind == job.KindStarted || e.Kind == job.KindExit || e.Kind == job.KindProgress; gang && e.Attempt == 0 && e.Time.After(w.events[3].Time) {
			t.Errorf("%s belongs to no attempt", e.Kind)
		}
	}
}

// TestJitter: back-offs differ, so that jobs that failed together do not restart together.
func TestJitter(t *testing.T) {
	for _, tt := range []struct {
		random float64
		want   float64
	}{{0, 0.75}, {0.5, 1}, {0.999, 1.2495}} {
		w := newWorld(t, dies(exited(0, 7), job.NetworkError, -1), works())
		w.supervisor.Rand = func() float64 { return tt.random }
		w.run(t)
		if got := w.report.Seconds.Backoff; got < tt.want-1e-6 || got > tt.want+1e-6 {
			t.Errorf("random %v: back-off of %v s, want %v", tt.random, got, tt.want)
		}
	}
	w := newWorld(t, dies(exited(0, 7), job.NetworkError, -1), works())
	w.supervisor.Rand = nil
	w.run(t)
	if got := w.report.Seconds.Backoff; got < 0.75 || got > 1.25 {
		t.Errorf("back-off of %v s", got)
	}
}

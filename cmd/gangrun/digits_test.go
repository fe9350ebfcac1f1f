package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/noskip"
)

// python is the interpreter that the examples name. The packages of the system, such as torch, belong to it.
const python = "/usr/bin/python3"

// needPython skips the test if the interpreter or one of the modules is missing.
func needPython(t *testing.T, modules string) {
	t.Helper()
	if out, err := exec.Command(python, "-c", "import "+modules).CombinedOutput(); err != nil {
		noskip.Skip(t, "%s cannot import %s: %v\n%s", python, modules, err, out)
	}
}

// pausing returns the text of an example, changed so that a rank of attempt N waits after step 12 as long as there is
// a file hold.N.
func pausing(t *testing.T, text []byte) []byte {
	t.Helper()
	const at = "        if args.step_sleep:\n"
	held := strings.Replace(string(text), at, `        while step == 13 and os.path.exists("hold." + os.environ.get("GANGRUN_ATTEMPT", "0")) and not stop.wait(0.02):
            pass
`+at, 1)
	if held == string(text) {
		t.Fatalf("the example has no line %q", at)
	}
	return []byte(held)
}

// hold makes the ranks of an attempt wait after step 12 until goOn is called.
func (b *bench) hold(attempt int) (goOn func()) {
	b.t.Helper()
	name := fmt.Sprintf("hold.%d", attempt)
	b.create(name).Close()
	return func() {
		b.t.Helper()
		if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
			b.t.Fatal(err)
		}
	}
}

// digits returns a bench that has the example digits, and a function. The function returns the arguments of gangrun run
// for a training of 24 steps, which is shorter than the example's, and appends its options to them.
func digits(t *testing.T) (*bench, func(options ...string) []string) {
	t.Helper()
	needPython(t, "numpy, torch")
	b := newBench(t)
	dir := filepath.Join(b.dir, "examples/digits")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"train.py", "job.yaml", "digits.csv.gz"} {
		data, err := os.ReadFile(filepath.Join("../../examples/digits", name))
		if err == nil && name == "train.py" {
			data = pausing(t, data)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return b, func(options ...string) []string {
		return append([]string{"examples/digits/job.yaml", "--", python, "examples/digits/train.py", "--epochs=4", "--batch=64", "--checkpoint-every=5"}, options...)
	}
}

// saved returns the steps of the checkpoints in the bench, in order.
func saved(b *bench) (steps []int64) {
	b.t.Helper()
	names, err := filepath.Glob(filepath.Join(b.dir, "examples/digits/checkpoints/ckpt-*.pt"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, name := range names {
		var step int64
		if _, err := fmt.Sscanf(filepath.Base(name), "ckpt-%d.pt", &step); err != nil {
			b.t.Fatalf("%s: %v", name, err)
		}
		steps = append(steps, step)
	}
	slices.Sort(steps)
	return steps
}

func checkpoint(step int64) string {
	return fmt.Sprintf("examples/digits/checkpoints/ckpt-%06d.pt", step)
}

// TestResume kills a rank in the middle of a training. The newest checkpoint is torn. The second attempt must resume
// from the newest good one, and end with exactly the weights of an undisturbed run.
func TestResume(t *testing.T) {
	t.Parallel()
	b, args := digits(t)
	goOn := []func(){b.hold(1), b.hold(2)}
	r := b.start(nil, args("--out=broken")...)
	r.await("step 12", func() bool {
		logs, _ := filepath.Glob(filepath.Join(b.dir, "home/runs/*/attempts/1", job.LogName(0, "out")))
		if len(logs) != 1 {
			return false
		}
		log, err := os.ReadFile(logs[0])
		return err == nil && strings.Contains(string(log), "\nstep 12/")
	})
	good := saved(b)
	const torn = 999
	whole := b.file(checkpoint(good[len(good)-1]))
	if err := os.WriteFile(filepath.Join(b.dir, checkpoint(torn)), []byte(whole[:len(whole)/2]), 0o600); err != nil {
		t.Fatal(err)
	}
	if !r.strike(r.started(1, 2), unix.SIGKILL) {
		t.Fatal("rank 2 is gone")
	}
	r.journalled("a second attempt", func(e job.Event) bool { return e.Kind == job.KindAttempt && e.Attempt == 2 })
	// The ranks make no steps beyond step 12.
	good = slices.DeleteFunc(saved(b), func(step int64) bool { return step == torn })
	newest := good[len(good)-1]
	for _, on := range goOn {
		on()
	}
	if code := r.finish(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}

	s := b.status()
	if s.State != job.StateSucceeded || len(s.Attempts) != 2 {
		t.Fatalf("state %s after %d attempts, want success after 2", s.State, len(s.Attempts))
	}
	first, second := s.Attempts[0], s.Attempts[1]
	if first.Cause == nil || first.Cause.Category != job.Killed || first.Cause.Rank != 2 || first.Verdict == nil || first.Verdict.Action != job.Restart {
		t.Errorf("attempt 1: cause %+v, verdict %+v; want rank 2 killed and a restart", first.Cause, first.Verdict)
	}
	if second.Cause != nil {
		t.Errorf("attempt 2 has a cause: %+v", second.Cause)
	}
	if second.ResumeFrom != filepath.Join(b.dir, checkpoint(newest)) {
		t.Errorf("attempt 2 resumed from %q, the newest good checkpoint was that of step %d", second.ResumeFrom, newest)
	}
	if text := string(b.ask("report")); len(regexp.MustCompile(`(?m)^ *cause +killed `).FindAllString(text, -1)) != 1 {
		t.Errorf("the report does not tell once that a rank was killed:\n%s", text)
	}
	log, err := os.ReadFile(filepath.Join(second.Logs, job.LogName(0, "out")))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("resumed from %s at step %d\nstep %d/24 ", second.ResumeFrom, newest, newest+1)
	if !strings.Contains(string(log), want) {
		t.Errorf("rank 0 did not say %q:\n%s", want, log)
	}

	if err := os.RemoveAll(filepath.Join(b.dir, "examples/digits/checkpoints")); err != nil {
		t.Fatal(err)
	}
	undisturbed := b.start(nil, append([]string{"--preflight", "off"}, args("--out=whole")...)...)
	if code := undisturbed.finish(); code != 0 {
		t.Fatalf("exit code %d of a run that nobody disturbs", code)
	}
	if len(b.file("whole")) == 0 || b.file("whole") != b.file("broken") {
		t.Errorf("the weights differ from those of an undisturbed run: %d and %d bytes", len(b.file("broken")), len(b.file("whole")))
	}
}

// TestValueError checks that an error in the code ends the run at once. The message of the error must be the last
// thing that the user sees.
func TestValueError(t *testing.T) {
	t.Parallel()
	b, args := digits(t)
	r := b.start(b.create("stderr"), args("--fail-rank=1", "--fail-step=20")...)
	if code := r.finish(); code != 1 {
		t.Errorf("exit code %d, want that of rank 1", code)
	}
	s := b.status()
	if s.State != job.StateFailed || len(s.Attempts) != 1 {
		t.Fatalf("state %s after %d attempts, want failed after one", s.State, len(s.Attempts))
	}
	if c := s.Attempts[0].Cause; c == nil || c.Category != job.SemanticError || c.Rank != 1 || !strings.Contains(c.Text, "ValueError") {
		t.Errorf("cause %+v, want the ValueError of rank 1", c)
	}
	screen := b.file("stderr")
	end := regexp.MustCompile(`(?:\n\[1[^\]\n]*\]! [^\n]*)+\n$`).FindString(screen)
	begin, last := strings.Index(end, "Traceback (most recent call last):"), strings.LastIndex(end, "ValueError: Expected input batch_size")
	if begin < 0 || last < begin || strings.Contains(strings.TrimSuffix(end[last:], "\n"), "\n") {
		t.Errorf("the screen does not end with the traceback of rank 1:\n%s", screen)
	}
}

// TestImportError checks that gangrun finds a missing module before it starts the gang.
func TestImportError(t *testing.T) {
	t.Parallel()
	needPython(t, "sys")
	b := newBench(t)
	r := b.start(nil, "-n", "4", "--", python, "-c", "import nosuch")
	if code := r.finish(); code != 78 {
		t.Errorf("exit code %d, want 78", code)
	}
	if s := b.status(); s.State != job.StatePreflightFailed || len(s.Attempts) != 0 {
		t.Errorf("state %s after %d attempts, want preflight-failed before any", s.State, len(s.Attempts))
	}
	if !strings.Contains(b.file("stderr"), "nosuch") {
		t.Error("gangrun does not name the module")
	}
}

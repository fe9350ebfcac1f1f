package diagnose

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/job"
)

// bySignal has the signatures that follow from the end of a rank alone.
var bySignal = map[string]struct{ yes, no job.Exit }{
	"sigsegv":           {job.Exit{Status: job.Signalled, Signal: 11, Core: true}, job.Exit{Status: job.Signalled, Signal: 7}},
	"mpi-no-finalize":   {job.Exit{Status: job.Exited, Fault: "it never called MPI_Finalize", Reason: job.ReasonNoFinalize}, job.Exit{Status: job.Exited}},
	"mpi-singleton":     {job.Exit{Status: job.Exited, Fault: "it ran as rank 0 of 1: a silent singleton", Reason: job.ReasonSingleton}, job.Exit{Status: job.Exited, Fault: "it left the others behind"}},
	"mpi-mixed":         {job.Exit{Status: job.Unstarted, Text: `"a" is built for mpich and "b" for openmpi: one gang cannot hold both`, Reason: job.ReasonMixedMPI}, job.Exit{Status: job.Unstarted, Text: "one gang"}},
	"zero-exit":         {job.Exit{Status: job.Exited, Fault: "it left the others behind"}, job.Exit{Status: job.Exited, Code: 1}},
	"mpi-abort":         {job.Exit{Status: job.Exited, Code: 7, Aborted: true}, job.Exit{Status: job.Exited, Code: 7}},
	"sigbus":            {job.Exit{Status: job.Signalled, Signal: 7}, job.Exit{Status: job.Signalled, Signal: 11}},
	"sigabrt":           {job.Exit{Status: job.Exited, Code: 134}, job.Exit{Status: job.Exited, Code: 6}},
	"sigill":            {job.Exit{Status: job.Signalled, Signal: 4}, job.Exit{Status: job.Signalled, Signal: 8}},
	"sigfpe":            {job.Exit{Status: job.Signalled, Signal: 8}, job.Exit{Status: job.Signalled, Signal: 4}},
	"sigtrap":           {job.Exit{Status: job.Signalled, Signal: 5}, job.Exit{Status: job.Signalled, Signal: 6}},
	"sigsys":            {job.Exit{Status: job.Signalled, Signal: 31}, job.Exit{Status: job.Exited, Code: 31}},
	"sigquit":           {job.Exit{Status: job.Signalled, Signal: 3}, job.Exit{Status: job.Exited, Code: 3}},
	"sigkill":           {job.Exit{Status: job.Signalled, Signal: 9}, job.Exit{Status: job.Exited, Code: 9}},
	"sigterm":           {job.Exit{Status: job.Signalled, Signal: 15}, job.Exit{Status: job.Exited, Code: 15}},
	"sighup":            {job.Exit{Status: job.Exited, Code: 129}, job.Exit{Status: job.Exited, Code: 1}},
	"signal":            {job.Exit{Status: job.Signalled, Signal: 10}, job.Exit{Status: job.Exited, Code: 138}},
	"cpu-time-limit":    {job.Exit{Status: job.Signalled, Signal: 24}, job.Exit{Status: job.Signalled, Signal: 25}},
	"file-size-limit":   {job.Exit{Status: job.Signalled, Signal: 25}, job.Exit{Status: job.Signalled, Signal: 24}},
	"host-silent":       {job.Exit{Status: job.Lost, Text: "no contact with the host for 10s", Reason: job.ReasonHostSilent}, job.Exit{Status: job.Unstarted, Text: "no contact with it"}},
	"output-lost":       {job.Exit{Status: job.Exited, Fault: "its output did not all arrive from h2: no contact with the host for 10s", Reason: job.ReasonOutputLost}, job.Exit{Status: job.Exited, Fault: "it left the others behind"}},
	"log-unwritten":     {job.Exit{Status: job.Exited, Fault: "not all that it printed could be kept: write the log of rank 2: no space left on device", Reason: job.ReasonLogWriteFailed}, job.Exit{Status: job.Exited, Fault: "its output did not all arrive from h2: it is gone"}},
	"host-gone":         {job.Exit{Status: job.Lost, Text: "the host has closed its connections and does not answer any more", Reason: job.ReasonHostGone}, job.Exit{Status: job.Lost, Text: "no contact with the host for 10s: it does not answer"}},
	"host-restarted":    {job.Exit{Status: job.Lost, Text: "the host was started anew, and its agent is gone", Reason: job.ReasonHostRestarted}, job.Exit{Status: job.Lost, Text: "the agent was killed or has ended"}},
	"controller-paused": {job.Exit{Status: job.Lost, Text: "gangrun itself stood still for 26s, and the agent on its host ended it meanwhile (--orphan-grace is 20s)", Reason: job.ReasonControllerPaused}, job.Exit{Status: job.Lost, Text: "the agent on its host is gone"}},
	"agent-gone":        {job.Exit{Status: job.Lost, Text: "the agent was killed or has ended", Reason: job.ReasonAgentGone}, job.Exit{Status: job.Lost, Text: "it does not die of SIGKILL"}},
	"container-memory":  {job.Exit{Status: job.Lost, Text: "the memory of its container was used up", Reason: job.ReasonContainerMemory}, job.Exit{Status: job.Lost, Text: "the memory of its container was used up"}},
	"container-ended":   {job.Exit{Status: job.Lost, Text: "its container ended", Reason: job.ReasonContainerEnded}, job.Exit{Status: job.Lost, Text: "its container ended"}},
	"no-container":      {job.Exit{Status: job.Unstarted, Text: "cannot mount /data", Reason: job.ReasonNoContainer}, job.Exit{Status: job.Unstarted, Text: "cannot mount /data"}},
	"not-reached":       {job.Exit{Status: job.Lost, Text: `start the agent on h2: host "h2" (port 22, user "root"): no answer within 10s`, Reason: job.ReasonNotReached}, job.Exit{Status: job.Lost, Text: `start the agent on h2: host "h2" (port 22, user "root"): the agent cannot be started: no space left on device`}},
	"rank-lost":         {job.Exit{Status: job.Lost, Text: "it does not die of SIGKILL"}, job.Exit{Status: job.Lost, Text: "the agent was killed or has ended", Reason: job.ReasonAgentGone}},
}

// TestRefusals checks that what a file system refuses to gangrun itself has the same signature at every stage of a run,
// and that the text names the path. Only ranks whose output was not kept for lack of space have another signature.
func TestRefusals(t *testing.T) {
	for reason, want := range map[string]string{
		"no space left on device": "disk-full no-space", "disk quota exceeded": "disk-full disk-quota",
		"read-only file system": "output-error read-only", "file too large": "output-error file-size-limit",
		"input/output error": "storage-error io-error", "stale NFS file handle": "storage-error stale-handle",
	} {
		kept := want
		if reason == "no space left on device" {
			kept = "disk-full log-unwritten"
		}
		const path = "/runs/r1/attempts/1/rank-0001.out"
		log := four().lines(job.SourceAgent, "h1", -1, "", 3, "write the log of rank 1: write "+path+": "+reason)
		for rank := range 4 {
			log = log.exit(rank, 4, job.Exit{Status: job.Signalled, Signal: 15, Stopped: true})
		}
		for moment, test := range map[string]struct {
			evidence job.Evidence
			want     string
		}{
			"started":  {four().exit(1, 3, job.Exit{Status: job.Unstarted, Text: "open " + path + ": " + reason}).Evidence, want},
			"lost":     {four().exit(1, 3, job.Exit{Status: job.Lost, Text: "start the agent on h1: mkdir " + path + ": " + reason}).Evidence, want},
			"running":  {log.Evidence, want},
			"finished": {four().exit(1, 3, job.Exit{Status: job.Exited, Fault: "not all that it printed could be kept: write the log of rank 1: write " + path + ": " + reason, Reason: job.ReasonLogWriteFailed}).Evidence, kept},
			"no gang":  {job.Evidence{Lines: []job.Line{{Source: job.SourceAgent, Rank: -1, Text: "cannot create the journal: open " + path + ": " + reason}}}, want},
		} {
			c := Diagnose(test.evidence)
			if got := string(c.Category) + " " + c.Signature; got != test.want || !strings.Contains(c.Text, path) || !strings.Contains(c.Text, reason) || c.Hint == "" {
				t.Errorf("%s, %s: got %s: %s (hint: %s), want %s", moment, reason, got, c.Text, c.Hint, test.want)
			}
		}
	}
}

// rankOne returns the evidence of a gang of two ranks. Rank 1 has failed with the text on its stderr. For the prefixes
// of text, see samples.
func rankOne(text string) job.Evidence {
	exit := job.Exit{Rank: 1, Host: "h1", Status: job.Exited, Code: 1, PID: 4711}
	source := job.SourceStderr
	rank := 1
	file := "rank-0001.err"
	if record, ok := strings.CutPrefix(text, "kernel: "); ok {
		exit.Status, exit.Signal, exit.Code = job.Signalled, 9, 0
		text, source, rank, file = record, job.SourceKernel, -1, ""
	}
	if record, ok := strings.CutPrefix(text, "segv: "); ok {
		exit.Status, exit.Signal, exit.Code = job.Signalled, 11, 0
		text, source, rank, file = record, job.SourceKernel, -1, ""
	}
	if why, ok := strings.CutPrefix(text, "unstarted: "); ok {
		exit.Status, exit.Text, exit.Code = job.Unstarted, why, 0
		text = ""
	}
	e := job.Evidence{Ranks: 2, Outcome: job.Outcome{Exits: []job.Exit{exit, {Rank: 0, Host: "h0", Status: job.Exited, Code: 1, Stopped: true}}}}
	for i, l := range strings.Split(text, "\n") {
		if text != "" {
			e.Lines = append(e.Lines, job.Line{Source: source, Host: "h1", Rank: rank, File: file, Line: i + 1, Text: l})
		}
	}
	return e
}

func TestRules(t *testing.T) {
	for _, r := range rules.All() {
		if _, ok := bySignal[r.Signature]; !ok && len(samples[r.Signature].yes)*len(samples[r.Signature].no) == 0 {
			t.Errorf("signature %s has no sample or no near miss", r.Signature)
		}
	}
	check := func(signature string, c job.Cause, want bool, text string) {
		t.Helper()
		if (c.Signature == signature) != want {
			t.Errorf("%s: want %v, got %s (%s): %s\nfor %s", signature, want, c.Signature, c.Category, c.Text, text)
		}
		if want && c.Category != rules.Named(signature).Category {
			t.Errorf("%s: category %s", signature, c.Category)
		}
		sane(t, c)
	}
	for signature, s := range samples {
		for _, text := range s.yes {
			check(signature, Diagnose(rankOne(text)), true, text)
		}
		for _, text := range s.no {
			check(signature, Diagnose(rankOne(text)), false, text)
		}
	}
	for signature, s := range bySignal {
		for want, exit := range map[bool]job.Exit{true: s.yes, false: s.no} {
			exit.Rank, exit.Host = 1, "h1"
			check(signature, Diagnose(job.Evidence{Ranks: 2, Outcome: job.Outcome{Exits: []job.Exit{exit}}}), want, exit.String())
		}
	}
}

var unfilled = regexp.MustCompile(`\$\{(title|artefact|rank|signal|code|core)\b`)

// sane checks what must hold for every Cause.
func sane(t *testing.T, c job.Cause) {
	t.Helper()
	if c.Category == "" {
		if c.Text == "" || c.Signature != "" || c.Retry != job.RetryNever {
			t.Errorf("a cause without category: %+v", c)
		}
		return
	}
	if !slices.Contains(job.Categories(), c.Category) || c.Signature == "" ||
		c.Retry != c.Category.Action() && c.Retry != job.RetryNever && (c.Category.Action() != job.RetryElsewhere || c.Retry != job.RetryAgain) {
		t.Errorf("category %q, signature %q, retry %q", c.Category, c.Signature, c.Retry)
	}
	if c.Text == "" || c.Hint == "" || strings.ContainsAny(c.Text+c.Hint, "\n\x1b") || unfilled.MatchString(c.Text+c.Hint) || strings.HasSuffix(strings.TrimSpace(c.Text), ":") {
		t.Errorf("%s: text %q, hint %q", c.Signature, c.Text, c.Hint)
	}
	if c.Confidence < 0.1 || c.Confidence > 1 {
		t.Errorf("%s: confidence %v", c.Signature, c.Confidence)
	}
	if len(c.Evidence) > headLines+tailLines+1 {
		t.Errorf("%s: %d lines of evidence", c.Signature, len(c.Evidence))
	}
}

// TestTorchWithoutCUDA checks that the hint is right for both errors of a PyTorch without CUDA.
func TestTorchWithoutCUDA(t *testing.T) {
	for _, text := range []string{"AssertionError: Torch not compiled with CUDA enabled", "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'"} {
		if got := Diagnose(rankOne(raise(text))); !strings.HasPrefix(got.Hint, "this PyTorch has no CUDA: ") || got.Retry != job.RetryNever {
			t.Errorf("%s: got %s, retry %s: %s", text, got.Signature, got.Retry, got.Hint)
		}
	}
}

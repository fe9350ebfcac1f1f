package diagnose

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestConfidence(t *testing.T) {
	oom := "Out of memory: Killed process 1001 (python3)"
	foreign := "Out of memory: Killed process 7777 (python3)"
	sure := Diagnose(four().kernel("h1", 9.9, oom).exit(1, 10, kill).Evidence).Confidence
	child := Diagnose(four().kernel("h1", 9.9, foreign).exit(1, 10, kill).Evidence).Confidence
	count := Diagnose(four().oomKills("h1", 9.9).exit(1, 10, kill).Evidence).Confidence
	both := Diagnose(four().oomKills("h1", 9.9).kernel("h1", 9.9, oom).exit(1, 10, kill).Evidence).Confidence
	segv := Diagnose(four().exit(1, 10, job.Exit{Signal: 11}).Evidence).Confidence
	if sure != 1 || both != 1 || segv != 1 || child >= sure || count >= sure || count < 0.5 {
		t.Errorf("pid %v, both %v, SIGSEGV %v, foreign pid %v, count %v", sure, both, segv, child, count)
	}
	exception := Diagnose(four().says(1, 10, raise("KeyError: 'a'")).exit(1, 10, failed).Evidence).Confidence
	weak := Diagnose(four().says(1, 10, "cat: /x: No such file or directory").exit(1, 10, failed).Evidence).Confidence
	if !(exception > weak && weak > 0.3) {
		t.Errorf("exception %v, weak text %v", exception, weak)
	}
}

func TestEvidenceOfTraceback(t *testing.T) {
	frames := strings.Repeat("  File \"/home/ana/job/train.py\", line 12, in f\n    f(n)\n", 100)
	text := "step 1\nstep 2\nTraceback (most recent call last):\n" + frames + "KeyError: 'a'\nlater"
	e := four().says(1, 10, text).exit(1, 11, failed).Evidence
	lines := Diagnose(e).Evidence
	if len(lines) != headLines+tailLines || lines[0].Text != "Traceback (most recent call last):" || lines[len(lines)-1].Text != "KeyError: 'a'" {
		t.Errorf("%d lines, first %q, last %q", len(lines), lines[0].Text, lines[len(lines)-1].Text)
	}
	if lines[0].Line != 3 || lines[len(lines)-1].Line != 204 || lines[0].File != "rank-0001.err" {
		t.Errorf("lines %d to %d of %s", lines[0].Line, lines[len(lines)-1].Line, lines[0].File)
	}
}

func TestEvidenceOfSilentEnd(t *testing.T) {
	e := four().prints(1, 5, "step 1").says(1, 6, "a\nb\n\nc\nd\ne\nf").exit(1, 10, job.Exit{Signal: 11}).Evidence
	lines := Diagnose(e).Evidence
	var texts []string
	for _, l := range lines {
		texts = append(texts, l.Text)
	}
	if got := strings.Join(texts, "|"); got != "b|c|d|e|f|rank 1 on h1 was ended by signal 11 (SIGSEGV)" {
		t.Errorf("evidence %s", got)
	}
}

func TestEnded(t *testing.T) {
	for ended, want := range map[job.Ended]job.Category{job.EndedTimeLimit: job.TimeLimit, job.EndedCancelled: job.Cancelled} {
		g := four().exit(0, 10, stopped)
		g.Ended = ended
		c := Diagnose(g.Evidence)
		if c.Category != want || c.Confidence != 1 || c.Rank != -1 || strings.Contains(c.Hint, "from the beginning") {
			t.Errorf("%s: %+v", ended, c)
		}
		sane(t, c)
	}
}

func TestNothingFailed(t *testing.T) {
	for name, e := range map[string]job.Evidence{
		"every rank ended by itself with code 0":                   four().says(0, 1, raise("KeyError: 'a'")).exit(0, 10, job.Exit{}).exit(1, 10, job.Exit{}).Evidence,
		"gangrun ended the gang; no rank had failed before":        four().exit(0, 10, stopped).exit(1, 10, stopped).Evidence,
		"no known sign of a failure in the last 0 lines of 0 logs": {},
	} {
		c := Diagnose(e)
		if c.Category != "" || c.Text != name || c.Rank != -1 {
			t.Errorf("%s: %+v", name, c)
		}
		sane(t, c)
	}
}

// Lines that only the Outcome has are looked at as well.
func TestLinesOfOutcome(t *testing.T) {
	e := four().says(1, 10, raise("KeyError: 'a'")).exit(1, 11, failed).Evidence
	e.Outcome.Lines, e.Lines = e.Lines, nil
	if c := Diagnose(e); c.Signature != "python-key-error" {
		t.Errorf("got %s", c.Signature)
	}
}

func TestHostileText(t *testing.T) {
	e := four().says(1, 10, raise("ValueError: \x1b[31mred\x1b[0m \x00\x07 "+strings.Repeat("é", 5000)+"\xff")).exit(1, 11, failed).Evidence
	c := Diagnose(e)
	sane(t, c)
	if len([]rune(c.Text)) > 500 || !strings.Contains(c.Text, "ValueError: red ") {
		t.Errorf("text %q", c.Text)
	}
}

func TestCascade(t *testing.T) {
	for text, want := range map[string]bool{
		timeout: true,
		"RuntimeError: [./gloo/transport/tcp/pair.cc:589] Read error [127.0.0.1]:26511: Connection reset by peer":                 true,
		"[rank1]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:50120": true,
		"ConnectionResetError: [Errno 104]":       true,
		"BrokenPipeError: [Errno 32] Broken pipe": true,
		"torch.distributed.DistBackendError: NCCL error in: x.cpp:1691, remote process exited or there was a network error, NCCL version 2.19": true,
		"W1006 13:08:30.123000 140 api.py:858] Sending process 171 closing signal SIGTERM":                                                     true,
		"MPIDI_CH3I_Progress(150): Communication error with rank 1":                                                                            true,
		"ValueError: bad label 11":                false,
		"RuntimeError: CUDA error: out of memory": false,
		"step 12/300 loss 0.5":                    false,
		"":                                        false,
		"the connection to the data base is open":             false,
		"Traceback (most recent call last):":                  false,
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tr": false,
	} {
		if got := Cascade(text); got != want {
			t.Errorf("Cascade(%q) = %v", text, got)
		}
	}
}

// TestLastWordsAreNoSilence: where the last words are quoted it is not said that
// nothing tells why.
func TestLastWordsAreNoSilence(t *testing.T) {
	got := Diagnose(four().says(0, 10, "the grid has no points").exit(0, 10.1, failed).Evidence).Text
	if want := `rank 0 on h1: ended with code 1; its last words are "the grid has no points"; its output is in rank-0000.err`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

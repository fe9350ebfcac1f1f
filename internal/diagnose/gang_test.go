package diagnose

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/diagnose/worldsize"
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

// TestLinesOfOutcome checks that lines which only the Outcome has count as evidence, too.
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
		if got := sign.Cascade(text); got != want {
			t.Errorf("Cascade(%q) = %v", text, got)
		}
	}
}

// TestLastWordsAreNoSilence checks that a text that quotes the last words does not say that nothing tells why.
func TestLastWordsAreNoSilence(t *testing.T) {
	got := Diagnose(four().says(0, 10, "the grid has no points").exit(0, 10.1, failed).Evidence).Text
	if want := `rank 0 on h1: ended with code 1; its last words are "the grid has no points"; its output is in rank-0000.err`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWorldSize(t *testing.T) {
	for text, want := range map[string]bool{
		"ValueError: world size must be 4, not 1":                                         true,
		"AssertionError: world_size should be 8":                                          true,
		"train.py: error: requires at least 2 processes":                                  true,
		"This program needs exactly 8 ranks":                                              true,
		"RuntimeError: Invalid world size 1":                                              true,
		"AssertionError: Invalid world size: 1 (need 4)":                                  true,
		"RuntimeError: world_size (1) is not divisible by tensor_model_parallel_size (2)": true,
		"AssertionError: world size (1) is not divisible by 8":                            true,
		"ValueError: tensor parallel size (4) is greater than world size (1)":             true,
		"This example must be run with mpirun -np 4":                                      true,
		"please launch with torchrun --nproc_per_node=2 train.py":                         true,
		"Must be run with at least two MPI processes":                                     true,
		"This program requires an even number of processes":                               true,
		"number of processes must be a power of two":                                      true,
		"nprocs must be greater than 1 and divisible by four":                             true,
		"Error: cannot run on a single process":                                           true,
		"ValueError: expected 4 ranks, got 1":                                             true,
		"Number of CPUs must be 2 !":                                                      true,

		"RuntimeError: requires at least 1 GPU":                    false,
		"ValueError: bad label 11":                                 false,
		"world size 1":                                             false,
		"world_size: 1, rank: 0":                                   false,
		"step 4 of 8 processes the batch":                          false,
		"num_workers must be at least 0":                           false,
		"the model needs 2 layers":                                 false,
		"This DataLoader will create 4 worker processes in total.": false,
		"using 4 processes":                                        false,
		"mpirun was unable to launch the specified application":    false,
	} {
		e := job.Evidence{Ranks: 1, Trial: true, Lines: []job.Line{{Rank: 0, Text: "hello"}, {Rank: 0, Text: text}}}
		l, got := worldsize.Find(e)
		if got != want || got && l.Text != text {
			t.Errorf("worldsize.Find(%q) = %q, %v", text, l.Text, got)
		}
		e.Ranks = 16 // more than any of them asks for
		if _, got := worldsize.Find(e); got {
			t.Errorf("worldsize.Find(%q) of 16 ranks", text)
		}
	}
}

// TestTooFewRanks checks ranks whose last words, exception or error message ask for more ranks than the gang has.
func TestTooFewRanks(t *testing.T) {
	for _, c := range []struct {
		ranks    int
		text     string
		want     string // the text after "the program needs"; empty if it needs no further ranks
		n        string
		category job.Category // the category if want is empty
	}{
		{2, "this needs at least 4 ranks", "at least 4 ranks", "4", ""},
		{1, "this needs at least 4 ranks", "at least 4 ranks", "4", ""},
		{3, "this needs at least 4 ranks", "at least 4 ranks", "4", ""},
		{2, "This program requires more than 3 processes", "at least 4 ranks", "4", ""},
		{2, "Error: This example must be run with exactly eight MPI processes", "8 ranks", "8", ""},
		{2, raise("ValueError: world size must be 4, not 2"), "4 ranks", "4", ""},
		{2, raise("AssertionError: world_size should be divisible by 8"), "at least 8 ranks", "8", ""},
		{2, "please run with mpirun -np 4", "4 ranks", "4", ""},

		{4, "this needs at least 4 ranks", "", "", job.Unknown},
		{8, "this needs exactly 4 ranks", "", "", job.Unknown},
		{2, "this needs at least 4 GPUs", "", "", job.Unknown},
		{2, "usage: mpirun -np 4 ./grid FILE", "", "", job.Unknown},
		{2, "this needs several processes", "", "", job.Unknown},
		{2, "this needs at least 4 ranks\nthe grid has no points", "", "", job.Unknown},
		{2, raise("KeyError: 'ranks'"), "", "", job.SemanticError},
	} {
		for name, end := range map[string]job.Exit{"code 1": failed, "MPI_Abort": abort} {
			g := &gang{job.Evidence{Ranks: c.ranks}}
			got := Diagnose(g.says(0, 10, c.text).exit(0, 10.1, end).Evidence)
			sane(t, got)
			if c.want == "" {
				if got.Signature == "too-few-ranks" || name == "code 1" && got.Category != c.category {
					t.Errorf("%s, %d ranks, %s: got %s", c.text, c.ranks, name, got.Text)
				}
				continue
			}
			if got.Category != job.IncorrectInputs || got.Signature != "too-few-ranks" || got.Retry != job.RetryNever || got.Rank != 0 ||
				!strings.Contains(got.Text, "the program needs "+c.want+": ") || got.Hint != "ask for them with -n "+c.n {
				t.Errorf("%s, %d ranks, %s: got %s (%s): %s; %s", c.text, c.ranks, name, got.Category, got.Signature, got.Text, got.Hint)
			}
		}
	}
}

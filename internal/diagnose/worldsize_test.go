package diagnose

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/worldsize"
	"github.com/gangrun/gangrun/internal/job"
)

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
		e.Ranks = 16 // more than any asks for
		if _, got := worldsize.Find(e); got {
			t.Errorf("worldsize.Find(%q) of 16 ranks", text)
		}
	}
}

// TestTooFewRanks: a rank whose last words, exception or error message ask for more
// ranks than the gang has failed for want of them.
func TestTooFewRanks(t *testing.T) {
	for _, c := range []struct {
		ranks    int
		text     string
		want     string // the program needs ...
		n        string
		category job.Category // of what is none
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

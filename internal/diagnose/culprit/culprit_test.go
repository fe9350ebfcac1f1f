package culprit

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/job"
)

// in returns the sign in line at of a text.
func in(at int, text ...string) Sign {
	s := Sign{Log: roster.Log{Rank: -1, Text: text}, Title: text[at], From: at, At: at, To: at + 1}
	for _, t := range text {
		s.Lines = append(s.Lines, job.Line{Rank: -1, Text: t})
	}
	return s
}

// TestNamed checks the rank that a sign names in its words, in lines above, or by the GPU of its process.
func TestNamed(t *testing.T) {
	for _, c := range []struct {
		sign Sign
		want int
	}{
		{in(0, "rank 3: cannot open mesh.bin"), 3},
		{in(0, "lost connection to rank 3"), -1},
		{in(0, "pod-3:312:402 [2] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-tq"), 2},
		{in(2, "MPI rank:    5 (out of 8)", "", "Fatal error:"), 5},
		{in(0, "ERROR: Unknown pair style foo (src/force.cpp:278)"), 0},
		{in(2, "tile 0 of 2: ready", "tile 1 of 2: ready", "AssertionError: tile 1: mass not conserved"), 1},
		{in(0, "  79 % ==> | step 19[4] terminate called after throwing an instance of 'E'"), 4},
	} {
		if got := c.sign.Named(roster.Count([]roster.Log{c.sign.Log})); got != c.want {
			t.Errorf("%q: got %d, want %d", c.sign.Title, got, c.want)
		}
	}
}

// TestBeside checks that a line above a sign names the rank if the line tells of a failure or is near enough.
func TestBeside(t *testing.T) {
	for _, c := range []struct {
		sign  Sign
		loose int
		want  int
	}{
		{in(1, "CRITICAL: loss nan on rank 3 since batch 448", "AssertionError"), 0, 3},
		{in(1, "rank 3: reads part 4", "AssertionError"), 0, -1},
		{in(1, "rank 3: reads the parts", "AssertionError"), 1, 3},
		{in(1, "[r3] step 7 mc error 1.3e-4", "AssertionError"), 1, -1},
		{in(0, "ABORT: Error in byte_write()", "rank 301: write error, ierr= 108"), 0, 301},
	} {
		if got := c.sign.Beside(c.loose); got != c.want {
			t.Errorf("%q: got %d, want %d", c.sign.Text, got, c.want)
		}
	}
}

// TestSource checks that the source lines of a traceback show on which rank they run.
func TestSource(t *testing.T) {
	for frames, want := range map[string]int{
		"<module>: main()\nmain: if rank == 2: raise ValueError": 2,
		"main: if comm.Get_rank() == 3: x = 1 / 0":               3,
		"main: if step == 7: raise ValueError":                   -1,
	} {
		if got := Source(frames); got != want {
			t.Errorf("%q: got %d, want %d", frames, got, want)
		}
	}
}

// TestLowestGPU checks that GPU 0 counts only beside other GPUs, because a rank that sees one GPU calls it GPU 0.
func TestLowestGPU(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"CUDA out of memory. Tried to allocate 2 GiB (GPU 3; 79 GiB total)\nCUDA out of memory. Tried to allocate 2 GiB (GPU 2; 79 GiB total)", 2},
		{"CUDA out of memory. Tried to allocate 2 GiB (GPU 0; 79 GiB total)", -1},
	} {
		if got := LowestGPU(strings.Split(c.text, "\n")); got != c.want {
			t.Errorf("%q: got %d, want %d", c.text, got, c.want)
		}
	}
}

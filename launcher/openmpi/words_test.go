package openmpi_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/launcher/openmpi"
)

// The files are what mpirun of Open MPI 4.1.4 wrote.
func TestWordsOfMpirun(t *testing.T) {
	tests := map[string][]openmpi.Word{
		"improper":     {{Rank: 2, PID: 21775, Kind: openmpi.Improper, Host: "198.18.0.2"}},
		"abort":        {{Rank: 1, Kind: openmpi.Abort, Code: 256}},
		"unheard":      {{Rank: -1, Kind: openmpi.Unheard}},
		"killed":       {{Rank: 3, PID: 21947, Kind: openmpi.Signal, Code: 9, Host: "198.18.0.2"}},
		"code":         {{Rank: 1, Kind: openmpi.ExitCode, Code: 3}},
		"missing":      {{Rank: 0, Kind: openmpi.NoProgram, Host: "h0"}},
		"lost":         {{Rank: -1, Kind: openmpi.Lost, Host: "198.18.0.2"}},
		"nodaemon":     {{Rank: -1, Kind: openmpi.NoDaemon}},
		"noagent":      {{Rank: -1, Kind: openmpi.NoAgent}},
		"noslots":      {{Rank: -1, Kind: openmpi.NoSlots}},
		"notallocated": {{Rank: -1, Kind: openmpi.NoSlots}},
		"root":         {{Rank: -1, Kind: openmpi.Root}},
	}
	var all string
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + name + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{1, 7, len(text)} {
				if got := read(string(text), size); !reflect.DeepEqual(got, want) {
					t.Errorf("in pieces of %d bytes: %+v, want %+v", size, got, want)
				}
			}
			// What comes before and after does not hide it.
			around := "a rank's words\n" + string(text) + "[h0:1] more\n" + string(text)
			if got, want := read(around, 100), append(want, want...); !reflect.DeepEqual(got, want) {
				t.Errorf("twice among others: %+v, want %+v", got, want)
			}
			all += string(text)
		})
	}
	if got := read(all, 4096); len(got) != len(tests) {
		t.Errorf("all together: %d words, want %d: %+v", len(got), len(tests), got)
	}
}

func TestWordsOfOthers(t *testing.T) {
	abort := openmpi.Word{Rank: 12, Kind: openmpi.Abort, Code: -7}
	tests := []struct {
		name, text string
		want       []openmpi.Word
	}{
		{"nothing", "", nil},
		{"a rank's own", "rank 1 says: on rank 12 in communicator\n", nil},
		{"no newline at the end", "MPI_ABORT was invoked on rank 12 in communicator MPI_COMM_WORLD\nwith errorcode -7.", []openmpi.Word{abort}},
		{"carriage returns", "MPI_ABORT was invoked on rank 12 in communicator X\r\nwith errorcode -7.\r\n", []openmpi.Word{abort}},
		{"two of them, no rule between", strings.Repeat("MPI_ABORT was invoked on rank 12 in communicator X\nwith errorcode -7.\n", 2), []openmpi.Word{abort, abort}},
		{"Open MPI 5", "MPI_ABORT was invoked on rank 12 in communicator MPI_COMM_WORLD\n  Proc: [[1,1],12]\n  Errorcode: 9\n\nwith errorcode -7.\n", []openmpi.Word{abort}},
		{"cut", "MPI_ABORT was invoked on rank 12 in communicator X\n" + strings.Repeat("-", 74) + "\nwith errorcode -7.\n", nil},
		{"a long line before", strings.Repeat("x", 1<<20) + "\nMPI_ABORT was invoked on rank 12 in communicator X\nwith errorcode -7.\n", []openmpi.Word{abort}},
		{"many lines before", strings.Repeat("a rank's words\n", 10000) + "MPI_ABORT was invoked on rank 12 in communicator X\nwith errorcode -7.\n", []openmpi.Word{abort}},
		{"a name in the place of a number", "mpirun has exited due to process [[57953,1],2] on\nnode h1 exiting improperly.\n", []openmpi.Word{{Rank: 2, Kind: openmpi.Improper, Host: "h1"}}},
		{"a number too large, then a good one", "MPI_ABORT was invoked on rank 99999999999 in communicator X\nwith errorcode 1.\nMPI_ABORT was invoked on rank 12 in communicator X\nwith errorcode -7.\n", []openmpi.Word{abort}},
		{"PRRTE", "PRTE has lost communication with a remote daemon.\n\n  HNP daemon   : [prterun-h0-1@0,0] on node h0\n  Remote daemon: [prterun-h0-1@0,1] on node h1\n", []openmpi.Word{{Rank: -1, Kind: openmpi.Lost, Host: "h1"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := read(test.text, 1000); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// read feeds text in pieces of size bytes.
func read(text string, size int) []openmpi.Word {
	var words openmpi.Words
	var said []openmpi.Word
	for len(text) > 0 {
		piece := text[:min(size, len(text))]
		said = append(said, words.Feed([]byte(piece))...)
		text = text[len(piece):]
	}
	return append(said, words.Close()...)
}

func FuzzWords(f *testing.F) {
	for _, name := range []string{"improper", "abort", "unheard", "killed", "code", "missing", "lost", "noslots"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), 13)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		whole := read(text, max(1, len(text)))
		if pieces := read(text, max(1, size)); fmt.Sprint(pieces) != fmt.Sprint(whole) {
			t.Errorf("in pieces of %d: %+v, whole: %+v", size, pieces, whole)
		}
		for _, word := range whole {
			if word.Rank < -1 || word.PID < 0 || word.Kind == "" {
				t.Errorf("%+v", word)
			}
		}
	})
}

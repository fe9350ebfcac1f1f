package memory

import (
	"fmt"

	"github.com/gangrun/gangrun/internal/job"
)

func soundFacts(n int) []job.Facts {
	facts := make([]job.Facts, n)
	for i := range facts {
		facts[i] = job.Facts{
			Host:    fmt.Sprintf("h%d", i+1),
			Workdir: job.PathFact{Path: "/w", Dir: true},
			Program: job.ProgramFact{PathFact: job.PathFact{Path: "/bin/train", Bytes: 10}, SHA256: "aaaa", Executable: true},
			Script:  &job.ScriptFact{PathFact: job.PathFact{Path: "/w/train.py", Bytes: 7}, SHA256: "5555", Compiled: i == 0},
			Inputs:  []job.PathFact{{Path: "/d/a.csv", Bytes: 5}, {Path: "/d/set", Dir: true}},
			Check:   &job.DirectoryFact{PathFact: job.PathFact{Path: "/c", Dir: true}, Free: 1 << 30, Largest: 100 << 20},
		}
	}
	return facts
}

func testSpec() job.Spec {
	s := job.Default()
	s.Command, s.Workdir, s.Ranks = []string{"train", "train.py"}, "/w", 4
	s.Inputs, s.CheckpointDir = []string{"/d/a.csv", "/d/set"}, "/c"
	return s
}

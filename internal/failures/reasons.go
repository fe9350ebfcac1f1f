package main

import (
	_ "embed" // reasons.csv
	"encoding/csv"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// caught is what found out about a failure.
type caught string

// What finds out about failures, from the cheapest to the dearest.
const (
	static caught = "static preflight"
	trial  caught = "trial"
	gang   caught = "gang"
)

// reason is a reason for failures in the Philly study, and the job that fails for it.
type reason struct {
	name string // as in the study
	// job is the name of the job file in examples/failures, without its extension, and does is
	// what the job does.
	job, does string
	// minutes is for how long the study's jobs had run when they failed: the median.
	minutes float64
	// category, by and recovers are what is right: the category, what catches the failure, and
	// whether the job gets to its end nevertheless. The right action is that of the category.
	category job.Category
	by       caught
	recovers bool
	// saves says that the job saves checkpoints.
	saves bool
}

// table has the reasons of table 7 of the study (Jeon et al., USENIX ATC 2019) in its order, except
// "No signature". Each line has the name of the reason, its median in the study, and the properties
// of the job here.
//
//go:embed reasons.csv
var table string

// reasons are those of the table.
var reasons = mustRead(table)

// mustRead reads a table of reasons, whose first line names the columns.
func mustRead(table string) []reason {
	lines, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		panic(err)
	}
	var read []reason
	for _, l := range lines[1:] {
		minutes, err := strconv.ParseFloat(l[2], 64)
		if err != nil {
			panic(err)
		}
		read = append(read, reason{name: l[0], job: l[1], minutes: minutes, category: job.Category(l[3]), by: caught(l[4]),
			recovers: l[5] == "yes", saves: l[6] == "yes", does: l[7]})
	}
	return read
}

// failAfter returns for how long the job runs before it fails, if the job that runs longest fails
// after longest.
func (r reason) failAfter(longest time.Duration) time.Duration {
	most := 0.0
	for _, other := range reasons {
		most = max(most, other.minutes)
	}
	return time.Duration(float64(longest) * r.minutes / most)
}
